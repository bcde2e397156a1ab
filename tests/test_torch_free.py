import subprocess
import sys

import pytest

from tests.records_for_tests import record, sweep, write

HEAVY = ("torch", "pandas", "matplotlib", "rich")

MODULES = [
    *("records", "store", "stats", "selection", "suite", "frame", "rows", "history"),
    *("state", "comparability", "environment", "nvml", "procfs"),
    *("reporting.table", "reporting.formats", "reporting.plots", "reporting.summary"),
    *("reporting.trends", "reporting.trendplots", "comparison", "gate", "rules", "visible"),
    *("document.parts", "document.page", "document.pictures"),
    *("reporting.benchmarks", "reporting.flat", "reporting.changes", "reporting.visible", "reporting.github"),
    *("document.build", "document.files", "cli.report"),
]


def test_results_are_read_and_shown_without_torch():
    imports = "\n".join(f"import dpbench.{module}" for module in MODULES)
    assert imported(imports, HEAVY) == "[]"


def imported(code, heavy, *arguments):
    """Which of these a fresh process has imported at the end of this code."""
    said = f"atexit.register(lambda: sys.stderr.write(str([m for m in {heavy} if m in sys.modules])))"
    whole = f"import atexit, sys\n{said}\n{code}"
    done = subprocess.run([sys.executable, "-c", whole, *arguments], capture_output=True, text=True, check=True)
    return done.stderr.strip()


@pytest.mark.parametrize("rounds", [3, 6])
@pytest.mark.parametrize("command", [["show"], ["show", "--json"], ["table"], ["table", "--relative-to", "nonprivate"]])
def test_a_command_on_results_imports_what_it_needs_and_no_more(tmp_path, command, rounds):
    heavy = HEAVY
    if rounds < 6 or command == ["table"]:
        heavy = (*heavy, "numpy")  # intervals need it, which there are from six rounds on
    path = write(tmp_path, sweep(rounds))
    assert imported("from dpbench.cli import main; main()", heavy, *command, str(path)) == "[]"


def test_the_commands_are_listed_without_torch():
    assert imported("from dpbench.cli import main; main()", ("torch", "pandas", "matplotlib"), "--help") == "[]"


@pytest.mark.parametrize("words", [["compare"], ["compare", "--json"], ["compare", "again"]])
def test_results_are_looked_at_without_torch(tmp_path, words):
    heavy = ("torch", "pandas", "matplotlib")
    path = str(write(tmp_path, [record("nonprivate"), record()]))
    command = ["dpbench", words[0], path, *(path if word == "again" else word for word in words[1:])]
    code = (
        f"import sys, dpbench.cli\nsys.argv = {command}\ntry:\n    dpbench.cli.main()\n"
        f"finally:\n    print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
