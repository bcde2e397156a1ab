"""The errors that dpbench raises. Each says what was got, what was expected and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class DpbenchError(Exception):
    """A mistake that the user can mend; the command prints it, without a traceback, and exits so."""

    exit_code = 2


class Refused(DpbenchError):
    """Something is not supported, and is said by name instead of being skipped or frozen."""


class NotConclusive(DpbenchError):
    """Something that has to be established before a figure may be trusted could not be."""


class EmptySelection(DpbenchError):
    """Nothing is left to run: ``-k`` or the exclusions match every cell away."""

    exit_code = 5


class MissingExtra(DpbenchError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed, and this needs it. Install it with: pip install 'dpsgd-bench[{extra}]'"
        )


def unknown(kind: str, got: str, known: Iterable[str], hint: str = "") -> DpbenchError:
    """An error for a name that does not exist, with the nearest ones that do."""
    names = sorted(known)
    near = get_close_matches(got, names, n=3, cutoff=0.5)
    if near:
        tail = f"Did you mean {' or '.join(near)}?"
    else:
        shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        tail = f"Known: {shown}."
    return DpbenchError(f"unknown {kind} {got!r}. {tail}{' ' + hint if hint else ''}")
