"""What the probe hears of one call: how its tensors grow with the batch, and where the examples lie in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from dpbench.errors import Refused
from dpbench.layout import Layout
from dpbench.ops.call import name_of
from dpbench.plan import PlannedCall

Shape = tuple[int, ...]
FEW, MORE = 2, 3
"""The two batch sizes that the probe runs on."""


@dataclass(frozen=True, slots=True)
class Growth:
    """An axis whose size is a multiple of the batch size, and the multiple."""

    axis: int
    rows: int


@dataclass(slots=True)
class Grown:
    """An axis that grows with the batch, and which of its entries each example's loss depends on."""

    axis: int
    rows: int
    active: dict[int, set[int]] = field(default_factory=dict)
    matters: bool = True
    """Whether output gradients may arrive there, so that a guess could be wrong."""
    value: Tensor | None = None
    """What lay there, where several entries belong to one example."""

    def note(self, ds: Tensor, example: int) -> None:
        """Mark the entries that the loss of ``example`` depends on, from its gradient there."""
        live = ds.detach().movedim(self.axis, 0).flatten(1).ne(0).any(1) if ds.ndim > 1 else ds.ne(0)
        self.active.setdefault(example, set()).update(live.nonzero().flatten().tolist())

    def compare(self, other: Grown, example: int) -> None:
        """Mark the entries that changed with ``example``: it owns them, whether gradients flow yet or not."""
        if self.value is None or other.value is None or self.value.shape != other.value.shape:
            return
        differs = self.value != other.value
        moved = differs.movedim(self.axis, 0).flatten(1).any(1) if differs.ndim > 1 else differs
        self.active.setdefault(example, set()).update(moved.nonzero().flatten().tolist())

    def fits(self, outer: int, inner: int) -> bool:
        """Whether each example's loss depends on its own entries alone, if they lie so."""
        return all(row // inner % MORE == j for j, rows in self.active.items() for row in rows)

    def candidates(self) -> list[Layout]:
        """All ways to lay out the examples that agree with what was seen, examples outermost first."""
        inners = [n for n in range(self.rows, 0, -1) if self.rows % n == 0]
        return [Layout(self.axis, self.rows // n, n) for n in inners if self.fits(self.rows // n, n)]


@dataclass(slots=True)
class Heard:
    """One call that reads parameters, as the probe heard it."""

    function: Callable[..., Any]
    operands: tuple[Any, ...]
    names: str
    outs: list[Grown | None] = field(default_factory=list)
    ndims: tuple[int, ...] = ()
    inputs: dict[str | int, Grown] = field(default_factory=dict)
    first: bool = True
    before: tuple[Any, ...] = ()
    shapes: tuple[Shape, ...] = ()

    def compare(self, other: Heard, example: int) -> None:
        """Take what another run, in which one example is different, says of who owns what."""
        for mine, its in zip(self.outs, other.outs, strict=False):
            if mine is not None and its is not None:
                mine.compare(its, example)
        for key, mine in self.inputs.items():
            if key in other.inputs:
                mine.compare(other.inputs[key], example)

    def planned(self) -> PlannedCall:
        """What the tape needs to know; raises if the examples' place could not be established."""
        outs = tuple(None if grown is None else self._layout(grown, None) for grown in self.outs)
        main = next((layout for layout in outs if layout is not None), None)
        layouts = {key: self._layout(grown, main) for key, grown in self.inputs.items()}
        return PlannedCall(
            self.function, self.operands, outs, self.ndims, layouts, self.first, self.before, self.shapes
        )

    def _layout(self, grown: Grown, output: Layout | None) -> Layout:
        candidates = grown.candidates()
        if not candidates:
            raise Refused(
                f"examples are mixed: through {name_of(self.function)}, which reads {self.names}, the loss of "
                "one example depends on another example of the batch, so no example has a gradient of its own. "
                "Remove what mixes them (batch norm, statistics over the batch, a shuffle of the batch)."
            )
        if output is not None and grown.rows == output.rows:
            same = Layout(grown.axis, output.outer, output.inner)
            if same in candidates:
                return same
        if len(candidates) > 1 and grown.matters:
            raise Refused(
                f"where the examples lie on axis {grown.axis} of what {name_of(self.function)} reads or gives "
                f"({self.names}) could not be established. Keep the batch on an axis of its own there."
            )
        return candidates[0]


def growth_of(few: Shape | None, more: Shape, heard: Heard) -> Growth | None:
    """The axis that grows from ``few`` to ``more``; raises unless it is one, in proportion to the batch."""
    if few is None or few == more:
        return None
    axes = [i for i, (a, b) in enumerate(zip(few, more, strict=False)) if a != b]
    axis = axes[0] if axes else 0
    if len(few) != len(more) or len(axes) != 1 or few[axis] * MORE != more[axis] * FEW:
        raise Refused(
            f"{name_of(heard.function)}, which reads {heard.names}: its tensors have shape {few} for {FEW} "
            f"examples and {more} for {MORE}; expected one axis that is a multiple of the batch size."
        )
    return Growth(axis, more[axis] // MORE)
