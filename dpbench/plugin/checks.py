"""The conformance checks as tests: one item for each check and implementation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dpbench.cli.verdicts import told
from dpbench.cli.verify import workload_of
from dpbench.conformance.candidate import Candidate
from dpbench.conformance.checks import Check, checks
from dpbench.conformance.selecting import present, selected
from dpbench.conformance.verdict import Ruling
from dpbench.conformance.verify import Pair, found
from dpbench.forkserver import ForkServer
from dpbench.records import Workload
from dpbench.sweep import names


def items(session: pytest.Session) -> Iterator[pytest.Item]:
    """Those that the options ask for."""
    config = session.config
    model = config.getoption("dpbench_model")
    workload = workload_of({"model": [model]} if model else {})
    given = ",".join(config.getoption("dpbench_impl") or ["all"]).split(",")
    chosen = selected(checks(workload).values(), config.getoption("dpbench_case"))
    server = ForkServer()

    def warn(text: str) -> None:
        config.issue_config_time_warning(pytest.PytestWarning(f"dpbench: {text}"), 2)

    config.add_cleanup(server.close)
    for name in present(given, names(), warn):
        candidate = Candidate.of(name)
        for check in chosen:
            yield CheckItem.from_parent(
                session,
                name=f"{name}[{check.name}]",
                check=check,
                candidate=candidate,
                workload=workload,
                server=server,
            )


class CheckItem(pytest.Item):
    """One check on one implementation; what is declared to fail is expected to."""

    def __init__(
        self, *, check: Check, candidate: Candidate, workload: Workload, server: ForkServer, **rest: Any
    ) -> None:
        super().__init__(**rest)
        self._check, self._candidate, self._workload, self._server = check, candidate, workload, server

    def runtest(self) -> None:
        """Find the verdict in a process of its own."""
        if self._check.missing:
            pytest.skip(f"needs {self._check.needs}")
        verdict = found(Pair(self._candidate.name, self._check.name), self._workload, self._server)
        if surprise := self._candidate.surprise(verdict):
            # No traceback: there is no line of the user's to show.
            pytest.fail(f"{told(verdict)}  [{surprise}]\n{self._check.reason} ({self._check.source})", pytrace=False)
        if verdict.ruling is not Ruling.RIGHT:
            known = self._candidate.expected.of(self._check.name)
            pytest.xfail(f"{verdict.ruling}, as declared: {known.reason if known else ''}")

    def reportinfo(self) -> tuple[str, int, str]:
        """Where it is reported from."""
        return "dpbench", 0, f"dpbench {self.name}"
