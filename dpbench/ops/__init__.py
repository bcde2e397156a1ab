"""One file per family of functions: from the output gradient to per-sample gradients and their norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dpbench.ops.call import Call
from dpbench.ops.convolution import Conv
from dpbench.ops.embedding import Embedding, Index
from dpbench.ops.matrix import Addmm, Linear, Matmul
from dpbench.ops.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from dpbench.ops.transposed import ConvTranspose
from dpbench.ops.use import Use


class Family(Protocol):
    """Functions that share a rule."""

    @property
    def functions(self) -> Sequence[Callable[..., Any]]:
        """The functions that are called so."""

    @property
    def signature(self) -> str:
        """Their arguments, written as in Python."""

    def uses(self, call: Call) -> list[Use] | None:
        """One use for each parameter in the call; None leaves the call to the generic rule."""


FAMILIES: tuple[Family, ...] = (
    Linear, Addmm, Matmul, Embedding, Index, Conv, ConvTranspose,
    LayerNorm, RMSNorm, GroupNorm, InstanceNorm, BatchNorm,
)  # fmt: skip

FAMILY_OF: dict[Callable[..., Any], Family] = {f: family for family in FAMILIES for f in family.functions}
