"""The tables of complexity: what a paper says that modules and implementations cost on one layer, and what they do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpbench.complexity.faked import Faked
from dpbench.complexity.layers import layers
from dpbench.paper import Figure, Term
from dpbench.records import Cell, Workload
from dpbench.reproducing.counting import Count, Counted
from dpbench.reproducing.fitting import shown_by
from dpbench.reproducing.point import Point
from dpbench.reproduction import Number, Three, Value


def values(figure: Figure, points: Sequence[Point], counted: Counted) -> list[Value]:
    """Each term at each size, in multiples of BTpd: as printed, by formula, and traced."""
    found: list[Value] = []
    for workload in dict.fromkeys(point.full.workload for point in points):
        found += _at(figure.term, workload, counted)
    return found


def _at(terms: Sequence[Term], workload: Workload, counted: Counted) -> Iterator[Value]:
    matrices = [layer.facts for layer in layers(Faked(workload)) if layer.facts.matrix]
    facts = max(matrices, key=lambda found: found.p * found.d)
    unit = facts.B * facts.T * facts.p * facts.d
    for term in terms:
        module = term.of.removeprefix("module ")
        is_module = module != term.of
        flops = counted.cells[Cell(shown_by(term.of), workload)]
        formula, traced = _module(flops, module) if is_module else (flops.formula, flops.traced)
        refused = Number(word=f"refused: {flops.reason}")
        yield Value(
            row=f"T={facts.T} d={facts.d} p={facts.p}",
            model=workload.model,
            sizes={} if workload.seq_len is None else {"T": workload.seq_len},
            quantity="flops",
            unit="BTpd",
            implementation=term.of,
            absolute=Three(
                published=Number(term.of_layer(facts.T, facts.d, facts.p)),
                predicted=refused if flops.reason else Number(None if formula is None else formula / unit),
                measured=refused if flops.reason else Number(None if traced is None else traced / unit),
            ),
            relative_to="",
        )


def _module(flops: Count, module: str) -> tuple[float, float]:
    return float(flops.formula_modules.get(module, 0)), float(flops.modules.get(module, 0))
