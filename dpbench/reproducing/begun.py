"""What is reproduced, and where: a directory that one run at a time writes to, and a later one goes on with."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpbench.errors import DpbenchError
from dpbench.paper import Figure, Paper
from dpbench.reproduction import FILE, Cited, Reproduction, how_to_go_on, read
from dpbench.results import NotBegun
from dpbench.results import read as read_results


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is reproduced, and how."""

    figures: tuple[tuple[Paper, Figure], ...]
    directory: Path
    device: str | None = None
    """Where suites are measured at full size; None: on the CPU, at their reduced size."""
    card: str | None = None
    """Predictions are for it; None: for the card that each figure was printed for."""
    measured: bool | None = None
    """Whether anything is run; None: it is."""
    command: str = ""
    resumed: bool = False
    """Whether the directory holds what was begun."""
    files: Mapping[str, str] = field(default_factory=dict)
    """By a paper's id, where it was read, of those that were named."""


def begin(asked: Asked, environment: Mapping[str, Any]) -> Reproduction:
    """An empty reproduction."""
    cited = {
        paper.id: Cited(id=paper.id, citation=paper.citation, url=paper.url, file=asked.files.get(paper.id, ""))
        for paper, _ in asked.figures
    }
    return Reproduction(
        command=asked.command,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        device=asked.device,
        environment=dict(environment),
        papers=tuple(cited.values()),
        asked=tuple(figure.id for _, figure in asked.figures),
        card=asked.card,
        measured=asked.measured is not False,
    )


def opened(asked: Asked, environment: Mapping[str, Any], given: Mapping[str, str]) -> Reproduction:
    """What the directory holds, or an empty one for a directory in which nothing is; nothing is written.

    ``given``: what each figure says, by its id.

    Raises:
        DpbenchError: something else is there, or it was begun when figures said something else.
    """
    if not asked.resumed:
        refuse_full(asked.directory)
        return replace(begin(asked, environment), given=dict(given))
    found = read(asked.directory)
    if changed := [id for id, said in given.items() if found.given.get(id) != said]:
        raise DpbenchError(
            f"{', '.join(changed)} of {asked.directory} has changed since that was begun: its numbers, its suites, its "
            "sizes, or the implementations that there are; put them back, or begin in another directory"
        )
    return found


def not_begun(directory: Path) -> Iterator[Path]:
    """Results files of an earlier run that was killed before their header was whole."""
    for path in sorted(directory.glob("*.jsonl")):
        try:
            read_results(path)
        except NotBegun:
            yield path


def go_on(asked: Asked, so_far: Reproduction, environment: Mapping[str, Any]) -> Asked:
    """The same, with everything that was not said again as it was begun.

    Raises:
        DpbenchError: other figures, another card or device, or another machine.
    """
    was = {"figures": so_far.asked, "card": so_far.card, "device": so_far.device, "measure": so_far.measured}
    now = {
        "figures": tuple(figure.id for _, figure in asked.figures),
        "card": asked.card,
        "device": asked.device,
        "measure": asked.measured,
    }
    for what, given in now.items():
        if given is not None and given != was[what]:
            raise DpbenchError(
                f"{asked.directory} was begun with {what} {_said(was[what])}, got {_said(given)}; "
                f"{how_to_go_on(asked.directory)} and nothing else, or begin in another directory"
            )
    if _machine(so_far.environment) != _machine(environment):
        raise DpbenchError(
            f"{asked.directory} was begun on another machine ({_machine(so_far.environment)}; this is "
            f"{_machine(environment)}), and speeds of two do not go into one; begin anew in another directory"
        )
    return replace(asked, resumed=True, device=so_far.device, card=so_far.card, measured=so_far.measured)


def _said(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _machine(environment: Mapping[str, Any]) -> object:
    machine = environment.get("machine")
    return machine.get("id") if isinstance(machine, Mapping) else machine


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """The directory, made where it is not there; no other run may write to it meanwhile.

    One that was made for nothing is not left behind.

    Raises:
        DpbenchError: another does, or it cannot be made.
    """
    there = directory.exists()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError as error:
        raise DpbenchError(f"cannot make the directory {directory}: {error.strerror}; choose another: -o DIR") from None
    try:
        _lock(descriptor, directory)
        yield
    finally:
        os.close(descriptor)
        if not there:
            # Only where it is empty.
            with suppress(OSError):
                directory.rmdir()


def _lock(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DpbenchError(
            f"another run writes to {directory}; wait until it ends, or choose another: -o DIR"
        ) from None
    except OSError as error:
        raise DpbenchError(
            f"cannot lock {directory}: {error.strerror}; expected a file system with locks, choose another: -o DIR"
        ) from None


def refuse_full(directory: Path) -> None:
    """Raise DpbenchError for a directory in which there is something: results of two runs are not mixed."""
    if (directory / FILE).is_file():
        raise DpbenchError(f"there is a reproduction in {directory}; {how_to_go_on(directory)}, or choose another")
    if directory.is_dir() and any(directory.iterdir()):
        raise DpbenchError(f"{directory} is not empty, expected a new directory: -o DIR")
