"""Uses of frozen weights: they cost a forward, and an output gradient where something before them is trained."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from dpbench.complexity.modules import Layer
from dpbench.facts import Facts
from dpbench.rewriting import REWRITTEN

FEATURES_FIRST = (F.linear, F.conv1d, F.conv2d, F.conv3d, torch.conv1d, torch.conv2d, torch.conv3d)
"""Functions whose weight is (p, d, ...)."""
FEATURES_LAST = (
    torch.addmm, torch.matmul, torch.mm, Tensor.addmm, Tensor.matmul, Tensor.mm, Tensor.__matmul__,
)  # fmt: skip
"""Functions whose weight is (d, p) on the right, and (p, d) on the left."""
ADDED_TO = (torch.addmm, Tensor.addmm)
"""Functions whose product is of their second and third operand."""


class FrozenUses(TorchFunctionMode):
    """Use as a context around one forward; ``layers`` are the products with frozen weights, in their order."""

    def __init__(self, model: nn.Module, batch: int) -> None:
        super().__init__()
        self._frozen: Mapping[int, str] = {
            id(p): name for name, p in model.named_parameters() if not p.requires_grad and p.ndim > 1
        }
        self._batch = batch
        self.layers: list[Layer] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in REWRITTEN:
            # It multiplies inside, which is to be seen, too.
            with self:
                out = REWRITTEN[func].function(*args, **(kwargs or {}))
            if out is not NotImplemented:
                return out
        out = func(*args, **(kwargs or {}))
        if func in FEATURES_FIRST or func in FEATURES_LAST:
            given = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
            left, right = given[1:3] if func in ADDED_TO else given[:2]
            for weight, other in ((left, right), (right, left)):
                if name := self._frozen.get(id(weight)):
                    last = func in FEATURES_LAST and weight is right
                    self.layers.append(self._layer(name, weight, out, not other.requires_grad, last))
        return out

    def _layer(self, name: str, weight: Tensor, out: Tensor, first: bool, last: bool) -> Layer:
        p, d = (weight.shape[1], weight.shape[0]) if last else (weight.shape[0], prod(weight.shape[1:]))
        rule = "convolution" if weight.ndim > 2 else "linear"
        facts = Facts(rule=rule, B=self._batch, T=out.numel() // (self._batch * p), d=d, p=p, first=first)
        return Layer(name, facts, size=weight.numel(), frozen=True)
