"""The timings of one cell, round by round, as they go into its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpbench.records import Metric, Round
from dpbench.state import State

SECONDS = "step_seconds"
AGAIN = "step_seconds_again"
"""Where a verdict was confirmed: the rounds of the second time."""
CONTROL = "step_seconds_control"
"""Of the base: the same beside itself."""

THROTTLED = "_throttled"
"""How the names end of what was taken in rounds in which a clock was held down: repeated, they count for nothing."""

REPEATS = 3
"""So many rounds of a workload are repeated for that; later ones count, and say so."""


@dataclass(slots=True)
class Timed:
    """What fresh processes told."""

    rounds: list[Round] = field(default_factory=list)
    seconds: list[tuple[float, ...]] = field(default_factory=list)
    at: list[tuple[float, ...]] = field(default_factory=list)
    aside: list[tuple[float, ...]] = field(default_factory=list)

    def add(self, told: Mapping[str, Any], state: State | None = None, repeated: bool = False) -> None:
        """One more round, as its process told of it; ``repeated``: it is kept, and counts for nothing."""
        if repeated:
            self.aside.append(tuple(told["seconds"]))
            return
        self.seconds.append(tuple(told["seconds"]))
        self.at.append(tuple(told["at"]))
        self.rounds.append(
            Round(
                started=told["started"],
                warm_up=told["warm_up"],
                settled=told["settled"],
                state=state or State(),
            )
        )

    def metrics(self, name: str = SECONDS) -> dict[str, Metric]:
        """By name; none without a round."""
        found = {name: Metric("s", tuple(self.seconds), tuple(self.at))} if self.rounds else {}
        return {**found, name + THROTTLED: Metric("s", tuple(self.aside))} if self.aside else found
