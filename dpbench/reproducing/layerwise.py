"""The picture of the layerwise decision, and the place of the first ghost norm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor

from dpbench.complexity.faked import Faked
from dpbench.complexity.layers import layers
from dpbench.complexity.modules import by_parameter
from dpbench.complexity.survey import mapped
from dpbench.decision import Decision, first_ghost
from dpbench.facts import added
from dpbench.paper import Figure
from dpbench.records import Workload
from dpbench.reproducing.fitting import matches
from dpbench.reproducing.point import Point
from dpbench.reproduction import Number, Three, Value

Layers = tuple[Decision, ...]
"""Of each trained matrix, in the order of the forward; T of all uses of it together."""


def of_networks(points: Sequence[Point], pool: Executor | None) -> dict[Workload, Layers]:
    """The layers of every workload."""
    workloads = list(dict.fromkeys(point.full.workload for point in points))
    return dict(zip(workloads, mapped(_layers, workloads, pool), strict=True))


def values(figure: Figure, found: Mapping[Workload, Layers]) -> Iterator[Value]:
    """The place of the first layer that takes a ghost norm, counted from 1."""
    for workload, own in found.items():
        rows = [row for row in figure.row if row.first_ghost_layer is not None and matches(row, workload)]
        printed = rows[0].first_ghost_layer if rows else None
        place = first_ghost(own)
        yield Value(
            row=label(workload),
            model=workload.model,
            sizes={} if workload.image_size is None else {"px": workload.image_size},
            quantity="first ghost layer",
            unit="place",
            implementation="2T^2 < pd",
            absolute=Three(
                published=Number() if printed is None else Number(float(printed)),
                predicted=Number(word="none") if place is None else Number(float(place)),
            ),
            relative_to="",
        )


def label(workload: Workload) -> str:
    """The network and its size."""
    sizes = [f"T={workload.seq_len}"] if workload.seq_len else []
    return " ".join([workload.model, *sizes, *([f"px={workload.image_size}"] if workload.image_size else [])])


def _layers(workload: Workload) -> Layers:
    uses = [layer for layer in layers(Faked(workload)) if layer.facts.matrix and not layer.frozen]
    wholes = {name: added([u.facts for u in own], ghostable=True) for name, own in by_parameter(uses).items()}
    return tuple(Decision(layer.name, wholes[layer.name].T, layer.facts.d, layer.facts.p) for layer in uses)
