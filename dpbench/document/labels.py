"""Short names of workloads: what all have in common is said once, and a model's options where its name tells enough."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from dpbench.records import Workload
from dpbench.selection import SHORT

SIZES = {axis: short for short, axis in SHORT.items()}
"""Said of every workload: B, T, px."""
AXES = [f for f in fields(Workload) if f.name != "model" and f.name not in SIZES]


@dataclass(frozen=True, slots=True)
class Labels:
    """How the workloads of a report are called."""

    of: dict[Workload, str]
    common: str
    """What all have that is no default: ``layers=2, threads=1``."""
    models: dict[str, str]
    """The models whose options are not said each time, by their short name."""

    def notes(self) -> list[str]:
        """What a table with these names has to say below."""
        told = [f"{short} stands for {model}" for short, model in self.models.items()]
        return [*([f"in every line: {self.common}"] if self.common else []), *told]


def labels(workloads: Iterable[Workload]) -> Labels:
    """Of these, no two of which are called the same."""
    every = list(dict.fromkeys(workloads))
    models = _models(every)
    values = {f.name: {getattr(w, f.name) for w in every} for f in AXES}
    varying = [f for f in AXES if len(values[f.name]) > 1]
    common = [(f, values[f.name].copy().pop()) for f in AXES if len(values[f.name]) == 1]
    return Labels(
        of={w: " ".join(_parts(w, models[w.model], varying)) for w in every},
        common=", ".join(f"{f.name}={value}" for f, value in common if value != f.default),
        models={short: model for model, short in models.items() if short != model},
    )


def _models(workloads: Iterable[Workload]) -> dict[str, str]:
    models = dict.fromkeys(w.model for w in workloads)
    names = [model.partition("(")[0] for model in models]
    return {model: name if names.count(name) == 1 else model for model, name in zip(models, names, strict=True)}


def _parts(workload: Workload, model: str, varying: Iterable[object]) -> Iterable[str]:
    yield model
    for axis, short in SIZES.items():
        if (value := getattr(workload, axis)) is not None:
            yield f"{short}={value}"
    for f in AXES:
        if f in varying and (value := getattr(workload, f.name)) != f.default:
            yield f"{f.name}={value}"
