"""What to run: a suite, from a TOML file or from options, and the cells that it stands for."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from dpbench.entrypoints import asked_for
from dpbench.errors import DpbenchError, unknown
from dpbench.records import Cell, Workload
from dpbench.suitefile import MEASURED, Spell, SuiteFile, dotted, mistaken, validate
from dpbench.suitepath import available, find

__all__ = ["BASELINE", "Suite", "applies", "available", "find", "from_options", "group", "load"]

Block = Mapping[str, tuple[Any, ...]]
"""Values by axis; all combinations are meant."""

BASELINE = "nonprivate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A set of cells and how long to measure each."""

    name: str
    title: str
    description: str = ""
    rounds: int = 3
    """Fresh processes."""
    budget_s: float = 1.0
    """Seconds of timing per implementation and round."""
    timeout_s: float = 600.0
    """Seconds after which one cell is given up."""
    memory: str | None = None
    """What a step may take where the batch is ``max``; None: the card's."""
    measure: tuple[str, ...] = MEASURED
    """What is taken of each cell, beside the check of its gradient."""
    blocks: tuple[Block, ...] = ()
    extra: tuple[Block, ...] = ()
    """Added after the exclusions."""
    exclude: tuple[Block, ...] = ()
    """A cell goes if, for one of these, every key matches one of its values (globs on strings)."""

    def groups(self, implementations: Sequence[str], baseline: str | None = None) -> dict[Workload, list[Cell]]:
        """The cells of each workload; see :meth:`cells`."""
        return group(self.cells(implementations, baseline))

    def cells(self, implementations: Sequence[str], baseline: str | None = None) -> list[Cell]:
        """Every cell once, those of a workload together, in the order of the suite.

        ``implementations`` are the names that exist; ``all`` stands for those that are not other
        libraries. ``baseline`` names one to compare with; it comes first and is added to every workload that lacks it.
        """
        for block in self.exclude:
            spelled_out(block.get("implementation", ()), implementations)
        chosen: dict[Workload, list[str]] = {}
        for block, may_go in [(b, True) for b in self.blocks] + [(b, False) for b in self.extra]:
            names = spelled_out(block.get("implementation", ("all",)), implementations)
            for workload in _workloads(block):
                kept = [n for n in names if not (may_go and any(_matches(e, n, workload) for e in self.exclude))]
                if kept:
                    chosen.setdefault(workload, []).extend(kept)
        cells = []
        for workload, kept in chosen.items():
            first = [baseline] if baseline else []
            cells += [Cell(n, workload) for n in dict.fromkeys(first + kept)]
        return cells

    def override(self, axes: Mapping[str, Any]) -> Suite:
        """The same suite with these axes, one value or a list each, in place of its own where they apply.

        None stands for an option that was not given. The models are the suite's own.
        """
        asked = {k: v for k, v in axes.items() if v is not None}
        if "model" in asked:
            raise DpbenchError("--model cannot be combined with a suite; choose among its models with -k")
        file = validate({"axes": {"model": "any", "batch": 1, **asked}}, "options", spell_option)
        given = {k: v for k, v in _block(file.axes).items() if k in asked}
        models = [str(b["model"][0]) for b in (*self.blocks, *self.extra)]
        if mistakes := _meaningless(given, models, spell_option):
            raise mistaken("options", mistakes)

        def changed(block: Block) -> Block:
            return {**block, **{k: v for k, v in given.items() if applies(k, str(block["model"][0]))}}

        return replace(self, blocks=tuple(map(changed, self.blocks)), extra=tuple(map(changed, self.extra)))


def group(cells: Iterable[Cell]) -> dict[Workload, list[Cell]]:
    """Cells by workload, both in the order given."""
    groups: dict[Workload, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.workload, []).append(cell)
    return groups


WITHOUT = {
    "seq_len": (
        "timm:", "torchvision:", "synthetic:cnn", "case:",
        "layer:conv2d", "layer:conv_transpose2d", "layer:groupnorm", "layer:instancenorm",
    ),
    "image_size": (
        "transformers:", "synthetic:mlp", "synthetic:transformer", "case:",
        "layer:linear", "layer:conv1d", "layer:layernorm", "layer:embedding", "layer:mha", "layer:rnn", "layer:gru",
        "layer:lstm",
    ),
}  # fmt: skip
"""Models, by how their names begin, that have no T, or no image size."""


def applies(axis: str, model: str) -> bool:
    """Whether a shared axis is meant for a model: no T for image models, no image size for text."""
    return not model.startswith(WITHOUT.get(axis, ()))


def from_options(
    axes: Mapping[str, Any],
    *,
    title: str = "options",
    rounds: int = 3,
    budget_s: float = 1.0,
    timeout_s: float = 600.0,
    memory: str | None = None,
    measure: Sequence[str] = MEASURED,
) -> Suite:
    """A suite from command-line options: ``axes`` maps ``model``, ``implementation`` and the fields
    of a workload to one value or a list each; None stands for an option that was not given."""
    data = {
        "title": title,
        "rounds": rounds,
        "budget_s": budget_s,
        "timeout_s": timeout_s,
        "memory": memory,
        "measure": list(measure),
        "axes": {k: v for k, v in axes.items() if v is not None},
    }
    return _suite(title, validate(data, "options", spell_option), "options", spell_option)


def load(name: str | Path) -> Suite:
    """The suite in a file, or of a name; see :func:`find`."""
    path = find(str(name))
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DpbenchError(f"{path} is not TOML: {error}") from None
    except OSError as error:
        raise DpbenchError(f"cannot read {path}: {error.strerror}") from None
    return _suite(path.stem, validate(data, str(path)), str(path), dotted)


def spell_option(place: tuple[int | str, ...]) -> str:
    """``--seq-len`` for ("axes", "seq_len")."""
    names = {"implementation": "impl", "budget_s": "budget", "timeout_s": "timeout"}
    name = next(str(p) for p in reversed(place) if isinstance(p, str))
    return f"--{names.get(name, name).replace('_', '-')}"


def _block(axes: BaseModel) -> dict[str, tuple[Any, ...]]:
    return {k: tuple(v) for k, v in axes if k in axes.model_fields_set}


def _by_model(blocks: Iterable[BaseModel]) -> list[dict[str, tuple[Any, ...]]]:
    """Blocks that have one model each."""
    return [{**block, "model": (m,)} for block in map(_block, blocks) for m in block["model"]]


def _meaningless(axes: Iterable[str], models: Sequence[str], spell: Spell) -> list[str]:
    """A mistake for each shared axis that no model has."""
    return [
        f"{spell(('axes', axis))} means nothing to any of the models: {', '.join(models)}"
        for axis in axes
        if models and not any(applies(axis, m) for m in models)
    ]


def _suite(name: str, file: SuiteFile, where: str, spell: Spell) -> Suite:
    shared = _block(file.axes)
    models = [{"model": (m,)} for m in shared.pop("model", ())]
    own = models + _by_model(file.models)
    blocks = [{**{k: v for k, v in shared.items() if applies(k, str(b["model"][0]))}, **b} for b in own]
    exclude = [_block(e) for e in file.exclude]
    mistakes = _meaningless(shared, [str(b["model"][0]) for b in own], spell)
    workloads = [w for b in blocks for w in _workloads(b)]
    for i, pattern in enumerate(exclude):
        about = {k: v for k, v in pattern.items() if k != "implementation"}
        if not any(_matches(about, "", w) for w in workloads):
            text = ", ".join(f"{k} = {list(v)}" for k, v in pattern.items())
            mistakes.append(f"{spell(('exclude', i))} matches no cell of the suite: {text}")
    if mistakes:
        raise mistaken(where, mistakes)
    return Suite(
        name=name,
        title=file.title or name,
        description=file.description,
        rounds=file.rounds,
        budget_s=file.budget_s,
        timeout_s=file.timeout_s,
        memory=file.memory,
        measure=tuple(dict.fromkeys(file.measure)),
        blocks=tuple(blocks),
        extra=tuple(_by_model(file.include)),
        exclude=tuple(exclude),
    )


_FASTEST_LAST = ("image_size", "seq_len", "batch")


def _workloads(block: Block) -> list[Workload]:
    """All combinations, the batch size varying fastest, then T and the image size."""
    names = [f.name for f in fields(Workload) if f.name in block and f.name not in _FASTEST_LAST]
    names += [n for n in _FASTEST_LAST if n in block]
    combinations = itertools.product(*(block[n] for n in names))
    return [Workload(**dict(zip(names, values, strict=True))) for values in combinations]


def _is_pattern(name: str) -> bool:
    return any(c in name for c in "*?[")


def spelled_out(asked: Iterable[str], known: Sequence[str]) -> list[str]:
    """The implementations that names, files, patterns and ``all`` stand for.

    Raises:
        DpbenchError: one is none of ``known``, nor a file, nor a pattern of one.
    """
    names: list[str] = []
    for name in asked:
        if not (name == "all" or name.endswith(".py") or any(fnmatchcase(k, name) for k in known)):
            raise unknown("implementation", name, known, "See: dpbench list implementations")
        if name == "all" or _is_pattern(name):
            names += asked_for(name, known)
        else:
            names.append(name)
    return names


def _matches(pattern: Block, implementation: str, workload: Workload) -> bool:
    def one(value: Any, wanted: Any) -> bool:
        both = isinstance(value, str) and isinstance(wanted, str)
        return fnmatchcase(value, wanted) if both else bool(value == wanted)

    return all(
        any(one(implementation if k == "implementation" else getattr(workload, k), w) for w in values)
        for k, values in pattern.items()
    )
