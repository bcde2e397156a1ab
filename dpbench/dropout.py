"""Switching dropout off, so that one example at a time and a whole batch compute the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench.batch import Batch
from dpbench.checkpoints import Lasting
from dpbench.interface import Losses

_DROPOUTS = {
    F.dropout,
    F.alpha_dropout,
    F.dropout1d,
    F.dropout2d,
    F.dropout3d,
    F.feature_alpha_dropout,
    torch.dropout,
}

_RECURRENT = {torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu}
"""Drop between layers."""

_DRAWS = {
    torch.rand, torch.rand_like, torch.randn, torch.randn_like, torch.normal, torch.bernoulli,
    Tensor.bernoulli, Tensor.bernoulli_, Tensor.normal_, Tensor.uniform_, Tensor.exponential_,
}  # fmt: skip


def without_dropout(model: nn.Module, losses: Losses) -> Losses:
    """Losses without dropout; the modules of the model that drop (DropPath, too) are put into eval mode for good."""
    for module in model.modules():
        if "drop" in type(module).__name__.lower() or type(module).__name__ == "StochasticDepth":
            module.eval()

    def quiet(model: nn.Module, batch: Batch) -> Tensor:
        with NoDropout():
            return losses(model, batch)

    return quiet


@contextmanager
def certain() -> Iterator[None]:
    """A context in which nothing is random: dropout keeps everything, draws give their middle value.

    A random state that moves all the same is moved by something else.
    """
    with NoDraws(), NoDropout():
        yield


class NoDraws(Lasting):
    """Every draw gives its middle value, so that an example draws alone what it draws in a batch."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in _DRAWS:
            return func(*args, **(kwargs or {}))
        # A model on the CPU is not to start CUDA.
        devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()  # type: ignore[no-untyped-call]
        with torch.random.fork_rng(devices=devices):
            result = func(*args, **(kwargs or {}))
        result.detach().fill_(0.5)
        return result


class NoDropout(Lasting):
    """Dropout that is called as a function, and inside attention, keeps everything."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in _DROPOUTS:
            return args[0] if args else kwargs["input"]
        if func is F.scaled_dot_product_attention:
            args, kwargs = args[:4], {**kwargs, "dropout_p": 0.0, **_after_dropout(args)}
        if func is F.multi_head_attention_forward:
            args, kwargs = _replaced(args, kwargs, 10, "dropout_p")
        if func in _RECURRENT:
            # (input, hx, weights, ...), and packed (data, batch_sizes, hx, weights, ...).
            args, kwargs = _replaced(
                args, kwargs, 6 if any(isinstance(a, (list, tuple)) for a in args[3:4]) else 5, "dropout"
            )
        return func(*args, **kwargs)


def _after_dropout(args: tuple[Any, ...]) -> dict[str, Any]:
    """``is_causal``, which comes after ``dropout_p``, by its name."""
    return {"is_causal": args[5]} if len(args) > 5 else {}


def _replaced(args: tuple[Any, ...], kwargs: dict[str, Any], at: int, name: str) -> tuple[Any, dict[str, Any]]:
    if len(args) > at:
        return (*args[:at], 0.0, *args[at + 1 :]), kwargs
    return args, {**kwargs, name: 0.0}
