"""Layer by layer: 2T^2 against pd, and which norm needs less space there (Bu, Mao, Xu 2022, 2205.10683)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpbench.decision import Decision, first_ghost
from dpbench.document.parts import Chart, Column, Entry, Grid, Kind, Section
from dpbench.document.sources import Material
from dpbench.errors import DpbenchError
from dpbench.reporting.decisions import chart
from dpbench.reporting.numbers import count
from dpbench.rows import Row

MOST_CHARTS = 12


@dataclass(frozen=True, slots=True)
class Network:
    """The layers of one model at one size, whatever the batch."""

    title: str
    row: Row
    """Of the first record that tells of them."""
    layers: tuple[Decision, ...]


def section(material: Material) -> Section | None:
    """A chart for each network and one table; None where no record tells of layers."""
    networks = _networks(material)
    if not networks:
        return None
    prose = ["A norm takes 2T^2 elements as a ghost norm and pd from the per-sample gradient; the rule picks the less."]
    prose += [_told(network) for network in networks[:MOST_CHARTS]]
    if len(networks) > MOST_CHARTS:
        prose.append(
            f"Drawn are {MOST_CHARTS} of {len(networks)} networks; -k narrows a report down; the table has all."
        )
    charts = [_chart(material, network, i) for i, network in enumerate(networks[:MOST_CHARTS], start=1)]
    return Section("layers", "The decision of each layer", tuple(prose), (*charts, _grid(material, networks)))


def _networks(material: Material) -> list[Network]:
    found: dict[tuple[str, str, tuple[Decision, ...]], Network] = {}
    for row in material.rows:
        first = row.baseline.record if row.baseline is not None else row.record
        if told := row.record.facts.get("layers") or first.facts.get("layers"):
            layers = _layers(told, row)
            workload = row.workload
            sizes = {"T": workload.seq_len, "px": workload.image_size, "layers": workload.layers}
            title = " ".join([workload.model, *(f"{k}={v}" for k, v in sizes.items() if v is not None)])
            if material.several:
                title = f"{row.file}: {title}"
            found.setdefault((row.file, title, layers), Network(title, row, layers))
    return list(found.values())


def _layers(told: Any, row: Row) -> tuple[Decision, ...]:
    try:
        return tuple(Decision.of(*layer) for layer in told)
    except (TypeError, ValueError):
        raise DpbenchError(
            f"the record of {row.implementation} on {row.workload.label()} has facts.layers = "
            f"{str(told)[:60]}, expected a list of [name, T, d, p]; run it anew with this dpbench"
        ) from None


def _told(network: Network) -> str:
    ghosts, of = sum(layer.is_ghost for layer in network.layers), len(network.layers)
    first = first_ghost(network.layers)
    where = (
        "none takes the ghost norm"
        if first is None
        else f"the first is layer {first}, {network.layers[first - 1].name}"
    )
    return f"{network.title}: {ghosts} of {of} layers take the ghost norm; {where}."


def _chart(material: Material, network: Network, number: int) -> Chart:
    return Chart(
        id=f"layers-{number}",
        caption=f"2T² and pd of each layer: {network.title}",
        draw=partial(chart, network.layers, network.title),
        alt=_told(network),
        sources=(network.row.file,),
        records=material.places_of([network.row]),
    )


def _grid(material: Material, networks: Sequence[Network]) -> Grid:
    lines = []
    for network in networks:
        place, first = material.place(network.row), first_ghost(network.layers)
        for i, layer in enumerate(network.layers, start=1):
            kind = Kind.BEST if i == first else Kind.PLAIN
            lines.append(
                (
                    Entry(network.title, record=place),
                    Entry(str(i), i),
                    Entry(layer.name),
                    *(Entry(str(n), n) for n in (layer.T, layer.d, layer.p)),
                    Entry(count(layer.grams), layer.grams),
                    Entry(count(layer.gradient), layer.gradient),
                    Entry("ghost" if layer.is_ghost else "instantiate", kind=kind),
                )
            )
    return Grid(
        id="layers",
        caption="T, d and p of each layer; of 2T^2 (ghost norm) and pd (per-sample gradient) the less is picked",
        columns=(
            Column("network", numeric=False),
            Column("#"),
            Column("layer", numeric=False),
            *(Column(name) for name in ("T", "d", "p", "2T^2", "pd")),
            Column("less space", numeric=False),
        ),
        lines=tuple(lines),
        notes=("set off: the first layer of a network that takes the ghost norm",),
        sources=tuple(dict.fromkeys(network.row.file for network in networks)),
    )
