"""``dpbench list``: what can be run, and on what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from dpbench.cards import Card
from dpbench.errors import DpbenchError, unknown
from dpbench.reporting.columns import aligned


def list_(
    what: Annotated[
        str | None, typer.Argument(help="implementations, models, suites, cases, devices or cards; default: all.")
    ] = None,
) -> None:
    """List the implementations, models, suites, cases and devices that there are, and the cards that are known."""
    if what is not None and what not in KINDS:
        raise unknown("kind of thing to list", what, KINDS)
    for i, kind in enumerate([what] if what else KINDS):
        entries = KINDS[kind]()
        title = [kind] if what is None else []
        body = aligned([list(entry) for entry in entries.items()], left=2) or ["none"]
        typer.echo("\n".join([""] * (i > 0) + title + [f"  {line}" if title else line for line in body]))


def _implementations() -> Mapping[str, str]:
    from dpbench.registry import ablations, available, libraries

    return {**available(), **ablations(), **libraries()}


def _models() -> Mapping[str, str]:
    from dpbench.models import available

    return available()


def _cases() -> Mapping[str, str]:
    from dpbench.conformance.checks import kit

    return {
        check.name: check.reason if check.source == "property" else f"{check.reason} [{check.source}]"
        for check in kit().values()
    }


def _suites() -> Mapping[str, str]:
    from dpbench import suite

    found = {}
    for name, path in suite.available().items():
        try:
            found[name] = suite.load(path).title
        except DpbenchError as error:
            found[name] = f"cannot be read: {error}"
    return found


def _devices() -> Mapping[str, str]:
    import torch

    found = {"cpu": f"{torch.get_num_threads()} threads"}
    for i in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(i)
        found[f"cuda:{i}"] = f"{properties.name}, {properties.total_memory / 1e9:.1f} GB"
    return found


def _cards() -> Mapping[str, str]:
    from dpbench.cards import cards

    def text(c: Card) -> str:
        peaks = ", ".join(f"{name} {peak / 1e12:.4g}" for name, peak in c.peaks.items())
        return f"{c.memory / 2**30:.1f} GiB, {c.bandwidth / 1e9:.0f} GB/s, TFLOP/s: {peaks}"

    return {name: text(c) for name, c in cards().items()}


KINDS: dict[str, Callable[[], Mapping[str, str]]] = {
    "implementations": _implementations,
    "models": _models,
    "suites": _suites,
    "cases": _cases,
    "devices": _devices,
    "cards": _cards,
}
