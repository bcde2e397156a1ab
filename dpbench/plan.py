"""What the probe establishes about a forward, call by call, and the tape then relies on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from torch import Tensor
from torch.utils import _pytree as pytree

from dpbench.derived import Derived, Key
from dpbench.layout import Layout
from dpbench.ops import FAMILY_OF, Family
from dpbench.ops.call import bind
from dpbench.ops.elementwise import SPREADING


@dataclass(frozen=True)
class PlannedCall:
    """One call that reads parameters: a use where its outputs hold examples, else a derivation."""

    function: Callable[..., Any]
    operands: tuple[Key, ...]
    """Which parameters, or tensors derived from them, it reads."""
    outs: tuple[Layout | None, ...] = ()
    """Where the examples lie in each output tensor; empty for a derivation."""
    ndims: tuple[int, ...] = ()
    layouts: Mapping[str | int, Layout] = field(default_factory=dict)
    """Where they lie in each argument: by name where the function has a family, else by place."""
    first: bool = True
    """Whether nothing but parameters requires a gradient here: the backward ends there unless anchored."""
    before: tuple[Any, ...] = ()
    """The trace since the last such call, with this one: see :mod:`dpbench.trace`."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """Of a derivation, the shapes of its outputs: an axis of one that is one no more may hold examples."""

    def derives(self, outs: Iterable[Tensor]) -> bool:
        """Whether a derivation still gives tensors that no example can be in."""
        for out, shape in zip(outs, self.shapes, strict=False):
            if out.ndim != len(shape) or any(a == 1 != b for a, b in zip(shape, out.shape, strict=True)):
                return False
        return True

    @cached_property
    def is_use(self) -> bool:
        """Whether parameters meet the batch here."""
        return bool(self.outs)

    @cached_property
    def family(self) -> Family | None:
        """The rule for it; None leaves it to the generic rule."""
        return FAMILY_OF.get(self.function) if self.outs and self.outs[0] is not None else None

    @cached_property
    def spreads(self) -> bool:
        """Whether it may be given parameters that were expanded over the batch."""
        return self.function in SPREADING and self.outs[0] is not None


@dataclass(slots=True)
class Plan:
    """The calls that read parameters, in the order of the forward."""

    calls: list[PlannedCall]
    tail: frozenset[Any] = frozenset()
    """The trace after the last of them; how often a function is called there may depend on the batch size."""
    alone: Mapping[int, float] = field(default_factory=dict)
    """Losses that examples of its first batch have alone, by their numbers; none where the forward draws."""
    tolerance: float = 0.0
    """How far a loss may be off by rounding."""
    proven: set[int] = field(default_factory=set)
    """Calls without a rule whose outputs one example at a time were seen to be those of the batch."""
    rewritten: bool = False
    """Whether functions were rewritten in terms of others, and are to be again: see :mod:`dpbench.rewriting`."""

    def next(
        self, number: int, function: Callable[..., Any], read: Iterable[Derived], since: list[Any]
    ) -> PlannedCall | None:
        """The call of that number if it is this one, after the same trace ``since`` the one before."""
        if number >= len(self.calls):
            return None
        planned = self.calls[number]
        fits = planned.function == function and planned.operands == tuple([derived.key for derived in read])
        return planned if fits and planned.before == tuple(since) else None


def operands(args: Iterable[Any], kwargs: Mapping[str, Any], known: Mapping[int, Derived]) -> list[Derived]:
    """The parameters among the arguments, looking one level into lists."""
    found = []
    for value in (*args, *kwargs.values()):
        if id(value) in known:
            found.append(known[id(value)])
        elif type(value) in (list, tuple):
            found.extend(known[id(item)] for item in value if id(item) in known)
    return found


def leaves(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str | int, Tensor]:
    """The tensors among the arguments: by name where the function has a family, else by place."""
    family = FAMILY_OF.get(function)
    pairs: Iterable[tuple[str | int, Any]]
    if family is not None:
        pairs = bind(family.signature, args, kwargs).items()
    else:
        pairs = enumerate(pytree.tree_leaves((args, dict(kwargs))))
    return {key: value for key, value in pairs if isinstance(value, Tensor)}


def replaced(
    args: Iterable[Any], kwargs: Mapping[str, Any], by_id: Mapping[int, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with some tensors replaced, looking one level into lists."""
    new = tuple([_replaced(value, by_id) for value in args])
    return new, {name: _replaced(value, by_id) for name, value in kwargs.items()}


def _replaced(value: Any, by_id: Mapping[int, Any]) -> Any:
    if type(value) in (list, tuple):
        return type(value)([by_id.get(id(item), item) for item in value])
    return by_id.get(id(value), value)


def tensors(result: Any) -> list[Tensor]:
    """The tensors in what a function returned."""
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, (tuple, list, dict)):
        return [value for value in pytree.tree_leaves(result) if isinstance(value, Tensor)]
    return []
