"""Functions that are rewritten in terms of others, so that their weights are read where rules are known.

A fused recurrent layer is a loop over linear layers, attention a few of them, a contraction one. What
listens to a forward is given those calls in place of the one; the gradients are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench.batch import Batch
from dpbench.checkpoints import Lasting
from dpbench.interface import Losses
from dpbench.rewriting import attention, bags, contraction, recurrent


@dataclass(frozen=True, slots=True)
class Rewriting:
    """``function`` gives what the one that it stands for gives, or NotImplemented."""

    function: Callable[..., Any]
    activations: tuple[str, ...] = ()
    """The first arguments, which are no weights; where there are none, a weight is an argument that is a parameter."""

    def is_due(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Whether a weight among the arguments is trained; a call in which none is stays as it is."""
        weights = [*args[len(self.activations) :], *(v for name, v in kwargs.items() if name not in self.activations)]
        kind = Tensor if self.activations else nn.Parameter
        return any(_is_trained(weight, kind) for weight in weights)


def _is_trained(value: Any, kind: type[Tensor]) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_is_trained(item, kind) for item in value)
    return isinstance(value, kind) and value.requires_grad


REWRITTEN: dict[Callable[..., Any], Rewriting] = {
    torch.lstm: Rewriting(recurrent.lstm, ("input", "hx")),
    torch.gru: Rewriting(recurrent.gru, ("input", "hx")),
    torch.rnn_tanh: Rewriting(recurrent.rnn_tanh, ("input", "hx")),
    torch.rnn_relu: Rewriting(recurrent.rnn_relu, ("input", "hx")),
    torch.lstm_cell: Rewriting(recurrent.lstm_cell, ("input", "hx")),
    torch.gru_cell: Rewriting(recurrent.gru_cell, ("input", "hx")),
    torch.rnn_tanh_cell: Rewriting(recurrent.rnn_tanh_cell, ("input", "hx")),
    torch.rnn_relu_cell: Rewriting(recurrent.rnn_relu_cell, ("input", "hx")),
    F.multi_head_attention_forward: Rewriting(attention.multi_head, ("query", "key", "value")),
    F.embedding_bag: Rewriting(bags.embedding_bag, ("input",)),
    torch.einsum: Rewriting(contraction.einsum),
    torch.tensordot: Rewriting(contraction.tensordot),
    torch.matmul: Rewriting(contraction.matmul),
    Tensor.matmul: Rewriting(contraction.matmul),
    Tensor.__matmul__: Rewriting(contraction.matmul),
}


class Rewritten(Lasting):
    """A context in which functions that read trained weights are rewritten before others hear of them."""

    def __init__(self) -> None:
        super().__init__()
        self.happened = False
        """Whether there was one; where there is none, this mode is best left out, as it costs at every call."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        rewriting = REWRITTEN.get(func)
        due = rewriting is not None and torch.is_grad_enabled() and rewriting.is_due(args, kwargs)
        if rewriting is not None and due and not self.is_forgotten():
            result = rewriting.function(*args, **kwargs)
            if result is not NotImplemented:
                self.happened = True
                return result
        return func(*args, **kwargs)


def rewritten(losses: Losses, mode: Rewritten | None = None) -> Losses:
    """The same losses, by functions that have rules where there are such."""
    mode = mode or Rewritten()

    def by_rules(model: nn.Module, batch: Batch) -> Tensor:
        with mode:
            return losses(model, batch)

    return by_rules
