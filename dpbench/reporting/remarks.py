"""What has to be said beside the figures of a cell: why it has none, and what they leave out."""

from __future__ import annotations

from collections.abc import Sequence

from dpbench.records import Outcome
from dpbench.reporting.numbers import percent
from dpbench.rows import Row

NAMED = 3
"""Parameters that are named; the record has them all."""


def said_of(row: Row) -> list[str]:
    """The reason of an outcome that is not ok, then the remarks on its coverage."""
    reason = " ".join(row.reason.split()) if row.outcome is not Outcome.OK else ""
    return [*([reason] if reason else []), *remarks(row)]


def remarks(row: Row) -> list[str]:
    """What its figures leave out, and what makes it slow."""
    found = []
    if row.partial and row.coverage is not None:
        names = f": {named(row.frozen)}" if row.frozen else ""
        found.append(f"{percent(1 - row.coverage)} of the parameters got no gradient{names}")
    if row.generic:
        found.append(f"{percent(row.generic)} of the parameters by the generic rule: slow")
    return found


def named(names: Sequence[str]) -> str:
    """The first of them, and how many more: ``cls_token, pos_embed, a and 12 more``."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
