"""Parameters and what is computed from parameters and constants alone: the batch-free frontier.

Position embeddings for ids of shape (1, T), a reshaped LayerScale, standardised weights, ``W.t()``:
each is a *derived parameter*. Its use is where it first meets the batch; the gradients found there
are pulled back to the parameters by a vector-Jacobian product, batched over the examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dpbench.errors import Refused

Key = tuple[Any, ...]
"""What names a tensor in the structure of a forward: (name,) or (number of the call, which output)."""


@dataclass(frozen=True, slots=True)
class Derived:
    """A parameter itself (``direct``), or a tensor derived from one or several ``roots``."""

    key: Key
    tensor: Tensor
    roots: tuple[str, ...]
    direct: bool = False
    moves: bool = True
    """Whether every entry of it is one entry of one root: then squared norms need no pull-back."""
    version: int = 0
    """The tensor's version when it was derived."""

    def check(self) -> None:
        """Raise if an in-place operation, of which the tape knows nothing, has changed it since."""
        if not self.direct and self.tensor._version != self.version:
            raise Refused(
                f"a tensor derived from {', '.join(self.roots)}, of shape {tuple(self.tensor.shape)}, is changed in "
                "place, so that its gradient would be taken of another tensor than was used. Use out-of-place "
                "operations on weights (w = w * mask rather than w[i] = 0)."
            )

    def pull(self, parameter: Tensor, gradient: Tensor, *, batched: bool) -> Tensor:
        """The gradient of ``parameter`` from that of this tensor; (B, ...) if ``batched``."""
        if self.direct:
            return gradient
        self.check()
        (pulled,) = torch.autograd.grad(
            self.tensor, parameter, gradient.to(self.tensor.dtype), retain_graph=True, allow_unused=True,
            is_grads_batched=batched,
        )  # fmt: skip
        if pulled is None:
            return parameter.new_zeros((gradient.shape[0], *parameter.shape) if batched else parameter.shape)
        return pulled


def direct(parameters: Mapping[str, Tensor]) -> dict[int, Derived]:
    """The parameters themselves, by the ids of their tensors."""
    return {id(p): Derived((name,), p, (name,), direct=True) for name, p in parameters.items()}


def derive(
    key: Key, function: Callable[..., Any], args: Sequence[Any], operands: Sequence[Derived], out: Tensor
) -> Derived:
    """What ``function`` made of ``operands``."""
    roots = tuple(dict.fromkeys(root for operand in operands for root in operand.roots))
    moves = len(operands) == 1 and operands[0].moves and len(roots) == 1 and _moves(function, args)
    return Derived(key, out, roots, moves=moves, version=out._version)


def _moves(function: Callable[..., Any], args: Sequence[Any]) -> bool:
    if function is Tensor.__getitem__:
        index = args[1] if isinstance(args[1], tuple) else (args[1],)
        return all(i is None or i is Ellipsis or isinstance(i, (int, slice)) for i in index)
    return function in MOVING


def _moving() -> set[Callable[..., Any]]:
    names = (
        "t transpose permute view reshape flatten unflatten unsqueeze squeeze contiguous clone swapaxes swapdims "
        "movedim moveaxis to float double half bfloat16 chunk split tensor_split unbind narrow select view_as "
        "reshape_as ravel"
    ).split()
    found: set[Callable[..., Any]] = set()
    for owner in (torch, Tensor):
        found.update(getattr(owner, name) for name in names if hasattr(owner, name))
    found.update(getattr(Tensor, name).__get__ for name in ("T", "mT", "H", "mH"))
    return found


MOVING = _moving()
