"""A report from results: which sections there are, in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from dpbench.document import (
    beside,
    decided,
    gradients,
    largest,
    methods,
    origins,
    predicted,
    reproduced,
    scaling,
    summary,
    tradeoff,
)
from dpbench.document.citations import cited
from dpbench.document.parts import Document, Section
from dpbench.document.sources import Material, material
from dpbench.records import Outcome
from dpbench.reproduction import Reproduction
from dpbench.results import Results

SECTIONS = (beside, scaling, largest, tradeoff, predicted, decided, gradients)
"""Each gives its section, or None where there is nothing for it."""
FEW_SOURCES = 4
"""That are named in the head of the page."""


def build(
    files: Sequence[Results],
    title: str = "",
    expression: str = "",
    command: str = "dpbench report",
    reproduction: Reproduction | None = None,
) -> Document:
    """The document of ``files``, of the cells that match ``expression``, and of a reproduction that they belong to.

    Raises:
        EmptySelection: nothing matches it.
    """
    found = material(files, expression)
    first: list[Section] = []
    told: list[str] = []
    how: list[str] = []
    others = found
    if reproduction is not None:
        names = {source.id: Path(source.file).name for source in found.sources}
        ids = {name: id for id, name in names.items()}
        records = {
            (names[row.file], row.implementation, row.workload.label()): place
            for row in found.rows
            if (place := found.place(row)) is not None
        }
        first = list(reproduced.sections(reproduction, ids, records))
        told, how = reproduced.sentences(reproduction), list(origins.paragraphs(reproduction))
        # What was measured for figures has its reduced size: who is fastest there, and its layers, tell of no paper.
        others = found.without({ids[name] for figure in reproduction.figures for name in figure.files if name in ids})
    own = [section for part in SECTIONS if (section := part.section(others if part is decided else found)) is not None]
    if files or reproduction is None:
        told += summary.sentences(found, others)
    suites = dict.fromkeys(results.header.suite for results in files)
    how += methods.paragraphs(found)
    return Document(
        title=title or (reproduced.title(reproduction) if reproduction else f"dpbench: {', '.join(suites)}"),
        made=f"by dpbench {version('dpsgd-bench')}, {command}, {datetime.now(UTC).isoformat(timespec='seconds')}",
        summary=tuple(told),
        methods=tuple(how),
        citations=tuple(cited(how)),
        sections=(*first, *own),
        sources=found.sources,
        records=found.taken(),
        facts=_facts(found),
    )


def _facts(found: Material) -> Mapping[str, str]:
    outcomes = Counter(row.outcome for row in found.rows)
    days = sorted({results.header.started[:10] for results in found.files.values()})
    # Many would hide everything else; they stand at the end.
    few = len(found.sources) <= FEW_SOURCES
    facts = {
        "sources": "; ".join(f"{s.id}: {Path(s.file).name}" for s in found.sources) if found.several and few else "",
        "cells": f"{len(found.rows)} of {found.of} (-k {found.expression})" if found.expression else str(found.of),
        **{str(outcome): str(outcomes[outcome]) for outcome in Outcome if outcomes[outcome]},
        "not run": str(len(found.missing)) if found.missing else "",
        **{f"model {short}": model for short, model in found.labels.models.items()},
        "in every cell": found.labels.common,
        "workloads": str(len({row.workload for row in found.rows})),
        "implementations": str(len({row.implementation for row in found.rows})),
        "machine": "; ".join(dict.fromkeys(source.machine for source in found.sources)),
        "measured": " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
    }
    return {name: said for name, said in facts.items() if said and (found.files or said != "0")}
