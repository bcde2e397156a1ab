"""Choosing cells with ``-k``: words joined by ``and``, ``or``, ``not`` and brackets, as in pytest.

A word matches a cell if it occurs in the implementation's name or in the workload's label, whatever
the case. ``NAME=VALUE`` with the name of an axis matches that value only, so that ``B=8`` is not ``B=80``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict

from dpbench.errors import DpbenchError, EmptySelection
from dpbench.records import Cell

SHORT = {"B": "batch", "T": "seq_len", "px": "image_size"}
"""The short names of axes, as a workload's label has them."""

Test = Callable[[Cell], bool]


def select(cells: Sequence[Cell], expression: str) -> list[Cell]:
    """The cells that match, in their order.

    Raises:
        DpbenchError: the expression cannot be read.
        EmptySelection: nothing matches; says what there was.
    """
    test = parse(expression)
    chosen = [c for c in cells if test(c)]
    if not chosen:
        names = sorted({c.implementation for c in cells})
        labels = list(dict.fromkeys(c.workload.label() for c in cells))
        more = f", and {len(labels) - 6} more" if len(labels) > 6 else ""
        raise EmptySelection(
            f"-k {expression!r} matches none of {len(cells)} cells. "
            f"Implementations: {', '.join(names) or 'none'}. "
            f"Workloads: {'; '.join(labels[:6]) or 'none'}{more}."
        )
    return chosen


def parse(expression: str) -> Test:
    """A test of one cell from an expression."""
    tokens = re.findall(r"[()]|[^\s()]+", expression)
    reader = _Reader(tokens, expression)
    test = reader.either()
    if reader.tokens:
        raise reader.error(f"{reader.tokens[0]!r}, expected 'and', 'or' or the end")
    return test


class _Reader:
    """Recursive descent: either = both {or both}; both = one {and one}; one = not one | (either) | word."""

    def __init__(self, tokens: list[str], expression: str) -> None:
        self.tokens = tokens
        self.expression = expression

    def error(self, got: str) -> DpbenchError:
        return DpbenchError(f"cannot read -k {self.expression!r}: got {got}. Try: -k 'bk and not B=8'")

    def take(self, *expected: str) -> bool:
        if self.tokens and self.tokens[0] in expected:
            self.tokens.pop(0)
            return True
        return False

    def either(self) -> Test:
        left = self.both()
        while self.take("or"):
            left = _or(left, self.both())
        return left

    def both(self) -> Test:
        left = self.one()
        while self.take("and"):
            left = _and(left, self.one())
        return left

    def one(self) -> Test:
        if self.take("not"):
            inside = self.one()
            return lambda cell: not inside(cell)
        if self.take("("):
            inside = self.either()
            if not self.take(")"):
                raise self.error("no closing bracket")
            return inside
        if not self.tokens or self.tokens[0] in ("and", "or", ")"):
            got = repr(self.tokens[0]) if self.tokens else "nothing"
            raise self.error(f"{got}, expected a word")
        return _word(self.tokens.pop(0))


def _and(left: Test, right: Test) -> Test:
    return lambda cell: left(cell) and right(cell)


def _or(left: Test, right: Test) -> Test:
    return lambda cell: left(cell) or right(cell)


def _word(word: str) -> Test:
    name, equals, value = word.partition("=")
    name = SHORT.get(name, name)

    def test(cell: Cell) -> bool:
        axes = {"implementation": cell.implementation, **asdict(cell.workload)}
        if equals and name in axes:
            return str(axes[name]) == value
        return word.lower() in f"{cell.implementation} {cell.workload.label()}".lower()

    return test
