"""From per-sample norms to clipping factors: clipping functions, styles, and the sensitivity that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from math import sqrt

import torch
from torch import Tensor

from dpbench.errors import DpbenchError, unknown
from dpbench.numerics import accumulator, squared_norms, weighted_sum
from dpbench.units import Units

FUNCTIONS = {
    "abadi": "C_i = min(1, R / (||g_i|| + s))",
    "automatic": "C_i = R / (||g_i|| + s)",
    "normalize": "C_i = R / ||g_i||",
}
"""abadi: Abadi et al. 2016, 1607.00133; automatic: Bu et al. 2022, 2206.07136, where s = 0.01."""

STYLES = ("flat", "per-layer")


@dataclass(frozen=True, slots=True)
class Groups:
    """The clipping group ``of`` each parameter, numbered from 0 to K - 1 = ``count`` - 1."""

    of: Mapping[str, int]
    count: int

    def told(self, norms: Tensor) -> Tensor:
        """Norms (B, K) as they are given out: (B,) where there is one group."""
        return norms[:, 0] if self.count == 1 else norms


@dataclass(frozen=True)
class Clip:
    """How each example's gradient is bounded before the sum.

    ``max_norm``: R. ``function``: abadi, automatic or normalize. ``style``: flat (one norm per
    example), per-layer (one per module), or groups, a mapping from a group's name to a pattern over
    parameter names (the first that matches counts); K groups get R / sqrt(K) each, so that the
    whole has sensitivity R in every style. ``stability``: s, by default 0.01 for automatic and 0
    otherwise (libraries use 1e-6 or 0.01 with abadi).

    Raises:
        DpbenchError: if a value is out of range or a name unknown.
    """

    max_norm: float = 1.0
    function: str = "abadi"
    style: str | Mapping[str, str] = "flat"
    stability: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.max_norm < float("inf"):
            raise DpbenchError(f"max_norm is {self.max_norm}; expected a positive, finite clipping threshold R")
        if self.function not in FUNCTIONS:
            raise unknown("clipping function", self.function, FUNCTIONS)
        if isinstance(self.style, str) and self.style not in STYLES:
            raise unknown("clipping style", self.style, STYLES, "Or give groups: {name: pattern}.")
        if self.stability is None:
            object.__setattr__(self, "stability", 0.01 if self.function == "automatic" else 0.0)
        if not (self.stability or 0.0) >= 0:
            raise DpbenchError(f"stability is {self.stability}; expected zero or more")

    @property
    def sensitivity(self) -> float:
        """Most that one example, or one unit, adds to the sum, in Euclidean norm: R, whatever function and style."""
        return self.max_norm

    def __str__(self) -> str:
        """The formula with its numbers, and the sensitivity that follows from it."""
        formula = FUNCTIONS[self.function].replace("R", f"{self.max_norm:g}")
        formula = formula.replace(" + s", f" + {self.stability:g}" if self.stability else "").replace(
            "(||g_i||)", "||g_i||"
        )
        scope = (
            ""
            if self.style == "flat"
            else f", {self.style if isinstance(self.style, str) else 'K groups'}, R / sqrt(K) each"
        )
        return f"{formula}{scope}; sensitivity {self.sensitivity:g} (add or remove one example)"

    def groups(self, names: Sequence[str]) -> Groups:
        """The clipping group of each parameter."""
        if self.style == "flat":
            return Groups(dict.fromkeys(names, 0), 1)
        labels = {name: self._label(name) for name in names}
        order = {label: k for k, label in enumerate(dict.fromkeys(labels.values()))}
        return Groups({name: order[label] for name, label in labels.items()}, len(order))

    def _label(self, name: str) -> str:
        if isinstance(self.style, str):
            return name.rpartition(".")[0]
        for label, pattern in self.style.items():
            if fnmatchcase(name, pattern):
                return label
        raise DpbenchError(
            f"parameter {name} is in no clipping group; the patterns are {', '.join(self.style.values())}. "
            "Add a last group with the pattern '*'."
        )

    def factors(self, norms: Tensor, groups: int = 1) -> Tensor:
        """Clipping factors for norms of any shape, the threshold shared by ``groups`` groups."""
        R, s = self.max_norm / sqrt(groups), self.stability or 0.0
        ratio = R / (norms + (0.0 if self.function == "normalize" else s))
        if self.function == "abadi":
            return ratio.clamp(max=1.0)
        # A gradient of zero stays zero whatever its factor; R / 0 would make it NaN.
        return torch.where(norms > 0, ratio, torch.zeros_like(ratio))


class Clipping:
    """The norms of one batch as they come in, parameter by parameter, and then the factors.

    With units everything here has a row for each unit that has examples, in place of one for each example.
    """

    def __init__(self, clip: Clip, groups: Groups, parameter: Tensor, batch: int, units: Units | None = None) -> None:
        self._clip, self._groups, self._units = clip, groups, units
        rows = batch if units is None else len(units)
        self._empty = torch.zeros(rows, dtype=accumulator(parameter.dtype), device=parameter.device)
        self._parts: list[list[Tensor]] = [[] for _ in range(groups.count)]

    def add_squared_norms(self, name: str, squares: Tensor) -> None:
        """Add one parameter's squared norms, (B,)."""
        self._parts[self._groups.of[name]].append(squares)

    def add_instantiated(self, name: str, samples: Tensor) -> None:
        """Add one parameter's instantiated gradients, (B, ...)."""
        self.add_squared_norms(name, squared_norms(samples))

    @cached_property
    def _norms(self) -> Tensor:
        """(B, K). Added up at the end: an addition for each parameter would cost a call for each."""
        groups = [torch.stack(parts).sum(0) if parts else self._empty for parts in self._parts]
        return torch.stack(groups, 1).sqrt()

    @property
    def norms(self) -> Tensor:
        """(B,) gradient norms, or (B, K) for K groups; by the units' numbers where units were given."""
        return self._groups.told(self._norms if self._units is None else self._units.by_number(self._norms))

    @cached_property
    def _factors(self) -> list[Tensor]:
        return list(self._clip.factors(self._norms, self._groups.count).unbind(1))

    def factor(self, name: str | None = None) -> Tensor:
        """(B,) factors C_i of one parameter's group; of all parameters where there is one group."""
        return self._factors[0 if name is None else self._groups.of[name]]

    def weighted_sums(self, stored: dict[str, Tensor]) -> dict[str, Tensor]:
        """``sum_i C_i g_i`` of stored per-sample gradients (module 5), each let go of as it is added up."""
        return {name: self.weighted_sum(name, stored.pop(name)) for name in list(stored)}

    def weighted_sum(self, name: str, samples: Tensor) -> Tensor:
        """``sum_i C_i g_i`` of one parameter's per-sample gradients, (B, ...)."""
        return weighted_sum(samples, self.factor(name))
