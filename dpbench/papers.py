"""Papers, each one TOML file: those of dpbench in ``report/papers``, a user's own in ``./papers``."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpbench.errors import DpbenchError, EmptySelection
from dpbench.paper import Figure, Paper
from dpbench.reportpath import find
from dpbench.suitefile import dotted, mistaken


def read(path: Path) -> Paper:
    """The paper in a file.

    Raises:
        DpbenchError: with every mistake on a line of its own.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DpbenchError(f"cannot read {path}: {error.strerror}; expected a paper's figures in TOML") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DpbenchError(f"{path} is not TOML: {error}") from None
    try:
        return Paper.model_validate(data)
    except ValidationError as error:
        # A figure with a mistake is one all the same.
        own = [e for e in error.errors() if e["type"] != "too_short" or not e["input"]]
        raise mistaken(str(path), [_mistake(e["type"], e["loc"], e["msg"], e["input"]) for e in own]) from None


def _mistake(kind: str, place: tuple[int | str, ...], message: str, got: Any) -> str:
    key = dotted(place) or "the file"
    if kind == "missing":
        return f"{key} is missing"
    if kind == "extra_forbidden":
        return f"{key} is unknown"
    said = message.removeprefix("Value error, ").replace("Input should be", "expected").replace("String ", "")
    return f"{key}: {said}" if isinstance(got, dict) else f"{key} is {got!r:.60}, {said}"


def printed_in(paper: str, figure: str) -> Figure:
    """One figure of a paper that came with dpbench."""
    return next(one for one in read(find(f"papers/{paper}.toml")).figure if one.id == figure)


def leading_terms() -> dict[str, float]:
    """The time of an implementation as the BK paper states it, in multiples of BTpd for large T."""
    return {term.of: term.BTpd for term in printed_in("bu2023", "complexity").term}


def available(more: Iterable[Path] = ()) -> list[Path]:
    """The files of papers, each once: dpbench's, the user's in ``./papers``, and those named."""
    places = [find("papers"), Path("papers")]
    files = [*(path for place in places for path in sorted(place.glob("*.toml"))), *more]
    return list({path.resolve(): path for path in files}.values())


def read_all(paths: Iterable[Path]) -> list[Paper]:
    """The papers in files.

    Raises:
        DpbenchError: a mistake in one, or an id that stands for two papers or figures.
    """
    found = {path: read(path) for path in paths}
    for kind, ids in (
        ("paper", [(paper.id, path) for path, paper in found.items()]),
        ("figure", [(figure.id, path) for path, paper in found.items() for figure in paper.figure]),
    ):
        for name, times in Counter(name for name, _ in ids).items():
            if times > 1:
                places = " and ".join(str(path) for own, path in ids if own == name)
                raise DpbenchError(f"{times} {kind}s are called {name!r}: in {places}; expected ids of their own")
    return list(found.values())


def chosen(papers: Iterable[Paper], patterns: Iterable[str] = ()) -> list[tuple[Paper, Figure]]:
    """The figures whose id, or ``paper/id``, matches one of ``patterns``; all, without any.

    Raises:
        EmptySelection: a pattern matches none; says which there are.
    """
    everything = [(paper, figure) for paper in papers for figure in paper.figure]
    wanted = list(patterns) or ["*"]
    for pattern in wanted:
        if not any(_is(pattern, *one) for one in everything):
            names = ", ".join(figure.id for _, figure in everything)
            raise EmptySelection(f"no figure is called {pattern!r}; there are {names}. See: dpbench reproduce --list")
    return [one for one in everything if any(_is(pattern, *one) for pattern in wanted)]


def _is(pattern: str, paper: Paper, figure: Figure) -> bool:
    return fnmatchcase(figure.id, pattern) or fnmatchcase(f"{paper.id}/{figure.id}", pattern)
