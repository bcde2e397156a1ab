"""A pytest plugin: the conformance checks as tests, and the cells of a suite as benchmarks, beside your own.

``pytest --dpbench-verify`` and ``pytest --dpbench SUITE``. Nothing else is imported until one of them is asked for.
"""

from __future__ import annotations

import pytest

ONLY_WITH = {"dpbench_select": "dpbench", "dpbench_case": "dpbench_verify", "dpbench_model": "dpbench_verify"}
"""Options that choose among what another one asks for."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, all beginning with ``--dpbench``."""
    group = parser.getgroup("dpbench", "conformance and benchmarks of DP-SGD gradient implementations")
    group.addoption("--dpbench", action="append", metavar="SUITE", help="Run the cells of a suite as benchmarks.")
    group.addoption("--dpbench-select", metavar="EXPR", help="Only cells that match: 'bk and not B=8'.")
    group.addoption("--dpbench-verify", action="store_true", help="Run the conformance checks as tests.")
    group.addoption("--dpbench-impl", action="append", metavar="NAME", help="Implementations, files, patterns, or all.")
    group.addoption("--dpbench-case", action="append", metavar="NAME", help="Cases, families or patterns.")
    group.addoption("--dpbench-model", metavar="MODEL", help="Your own model, path/to/file.py:build, not the kit.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add what is asked for; first of all, so that ``-k`` and the options of others hold for it, too."""
    suites, verify = config.getoption("dpbench"), config.getoption("dpbench_verify")
    for option, what in ONLY_WITH.items():
        if config.getoption(option) and not config.getoption(what):
            raise pytest.UsageError(f"{_spelled(option)} is given without {_spelled(what)}, which it chooses from")
    if not (suites or verify):
        return
    from dpbench.errors import DpbenchError

    try:
        if verify:
            from dpbench.plugin import checks

            items.extend(checks.items(session))
        if suites:
            from dpbench.plugin import cells

            items.extend(cells.items(session, suites))
    except DpbenchError as error:
        raise pytest.UsageError(str(error)) from None


def _spelled(option: str) -> str:
    return f"--{option.replace('_', '-')}"
