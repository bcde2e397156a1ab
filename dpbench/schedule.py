"""In which order implementations are timed, so that drift of the machine falls on all alike."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

MOST = 200
"""Samples per implementation and round; more tell nothing new of a round."""


def counts(seconds: Mapping[str, float], budget_s: float) -> dict[str, int]:
    """How many steps fit into the budget of each, given what one step takes; at least one."""
    return {name: max(1, min(MOST, math.floor(budget_s / max(s, 1e-9)))) for name, s in seconds.items()}


def blocks(counts: Mapping[str, int], seed: int) -> list[list[str]]:
    """A list of blocks; ``counts[name]`` of them, spread evenly, have that name once.

    Every second block runs through the names in the reverse of the random order before it, so that
    over a pair each name has the same mean position, and follows and precedes each other once.
    """
    generator = random.Random(seed)
    total = max(counts.values(), default=0)
    made: list[list[str]] = []
    order: list[str] = []
    for b in range(total):
        if b % 2:
            order = order[::-1]
        else:
            order = sorted(counts)
            generator.shuffle(order)
        made.append([n for n in order if (b + 1) * counts[n] // total > b * counts[n] // total])
    return made
