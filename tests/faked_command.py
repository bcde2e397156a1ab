"""The real command in a process of its own, whose children are simulated: exit codes in a second, without torch."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

from tests.children_in_turns import Stage

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {"machine": {"id": "simulated"}, "versions": {"torch": "2.9.0"}}


def main(trouble, factors, seats):
    """Run ``dpbench`` with the words on the command line."""
    import dpbench.ab
    import dpbench.environment
    import dpbench.sweep
    from dpbench.cli import main as command

    stage = Stage(trouble=trouble, factors=factors, seats=list(seats))
    for module in (dpbench.ab, dpbench.sweep):
        module.ForkServer = lambda **given: stage.launchers(given)
    dpbench.environment.environment = lambda: ENVIRONMENT
    registry = types.ModuleType("dpbench.registry")
    registry.source_hash, registry.source_file = lambda name: "abc", lambda name: None
    sys.modules["dpbench.registry"] = registry
    command()


def words(*given, trouble=None, factors=None, seats=("base", "control", "new")):
    """The command line of such a process."""
    code = f"from tests.faked_command import main; main({trouble or {}!r}, {factors or {}!r}, {seats!r})"
    return [sys.executable, "-c", code, *map(str, given)]


def done(*given, cwd=None, stdin="", environment=None, **how):
    """What came of it."""
    import os

    return subprocess.run(
        words(*given, **how),
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "GITHUB_ACTIONS": "", **(environment or {})},
        timeout=120,
    )
