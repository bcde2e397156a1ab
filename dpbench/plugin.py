"""A pytest plugin: ``pytest --dpbench-verify`` runs the conformance checks as tests beside your own.

Nothing else is imported until that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dpbench.conformance.candidate import Candidate
    from dpbench.conformance.checks import Check
    from dpbench.records import Workload


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, all beginning with ``--dpbench``."""
    group = parser.getgroup("dpbench", "conformance of DP-SGD gradient implementations")
    group.addoption("--dpbench-verify", action="store_true", help="Run the conformance checks as tests.")
    group.addoption("--dpbench-impl", action="append", metavar="NAME", help="Implementations, files, patterns, or all.")
    group.addoption("--dpbench-case", action="append", metavar="NAME", help="Cases, families or patterns.")
    group.addoption("--dpbench-model", metavar="MODEL", help="Your own model, path/to/file.py:build, not the kit.")


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add an item for each check and implementation."""
    if config.getoption("--dpbench-verify"):
        from dpbench.errors import DpbenchError

        try:
            items.extend(_items(session, config))
        except DpbenchError as error:
            raise pytest.UsageError(str(error)) from None


def _items(session: pytest.Session, config: pytest.Config) -> Iterator[pytest.Item]:
    from dpbench.cli.verify import workload_of
    from dpbench.conformance.candidate import Candidate
    from dpbench.conformance.checks import checks
    from dpbench.conformance.selecting import present, selected
    from dpbench.forkserver import ForkServer
    from dpbench.sweep import names

    model = config.getoption("--dpbench-model")
    workload = workload_of({"model": [model]} if model else {})
    given = ",".join(config.getoption("--dpbench-impl") or ["all"]).split(",")
    chosen = selected(checks(workload).values(), config.getoption("--dpbench-case"))
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

    def __init__(self, *, check: Check, candidate: Candidate, workload: Workload, server: Any, **rest: Any) -> None:
        super().__init__(**rest)
        self._check, self._candidate, self._workload, self._server = check, candidate, workload, server

    def runtest(self) -> None:
        """Find the verdict in a process of its own."""
        from dpbench.cli.verdicts import told
        from dpbench.conformance.verdict import Ruling
        from dpbench.conformance.verify import Pair, found

        if self._check.missing:
            pytest.skip(f"needs {self._check.needs}")
        verdict = found(Pair(self._candidate.name, self._check.name), self._workload, self._server)
        if surprise := self._candidate.surprise(verdict):
            raise Surprise(f"{told(verdict)}  [{surprise}]\n{self._check.reason} ({self._check.source})")
        if verdict.ruling is not Ruling.RIGHT:
            known = self._candidate.expected.of(self._check.name)
            pytest.xfail(f"{verdict.ruling}, as declared: {known.reason if known else ''}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The verdict alone: there is no line of the user's to show."""
        if isinstance(excinfo.value, Surprise):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        """Where it is reported from."""
        return "dpbench", None, f"dpbench {self.name}"


class Surprise(AssertionError):
    """A verdict that is not what was declared."""
