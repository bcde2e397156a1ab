"""Which gradients have been checked already: once for each model, implementation, source and precision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from dpbench.coverage import Coverage
from dpbench.records import Outcome, Parity, Record, Workload, digest

Checked = tuple[Parity, Coverage]
"""The result of a check and the coverage."""

_SAME_GRADIENT = ("batch", "logical_batch", "step", "optimizer", "max_norm", "threads", "seed")
"""Axes that the check does not depend on: it chooses its own batch and clipping norm. T and the image size
are not among them, because implementations choose their way by them."""


class ParityCache:
    """Checks that need not be repeated; ``recheck`` forgets each at once."""

    def __init__(self, sources: Mapping[str, str], records: Iterable[Record] = (), recheck: bool = False) -> None:
        self._sources, self._recheck = sources, recheck
        self._known: dict[str, Checked] = {}
        for record in records:
            # Who refused something after the check has a record without its coverage.
            if record.outcome is not Outcome.REFUSED and record.parity is not None and record.coverage is not None:
                self.put(record.cell.workload, record.cell.implementation, (record.parity, record.coverage))

    def get(self, workload: Workload, implementation: str) -> Checked | None:
        """What is known."""
        return self._known.get(self._key(workload, implementation))

    def put(self, workload: Workload, implementation: str, checked: Checked) -> None:
        """Keep it."""
        if not self._recheck:
            self._known[self._key(workload, implementation)] = checked

    def _key(self, workload: Workload, implementation: str) -> str:
        axes = {k: v for k, v in asdict(workload).items() if k not in _SAME_GRADIENT}
        return digest([axes, implementation, self._sources.get(implementation, "")])
