import subprocess
import sys

import pytest

from tests.records_for_tests import record, write

MODULES = [
    *("records", "store", "stats", "selection", "suite", "frame", "rows"),
    *("comparison", "slowdown", "ratios", "visible", "gate", "rules"),
    *("state", "comparability", "environment", "nvml", "procfs"),
    *("reporting.table", "reporting.formats", "reporting.plots", "reporting.summary"),
    *("reporting.changes", "reporting.visible", "reporting.github"),
]


def test_results_are_read_and_shown_without_torch():
    heavy = ("torch", "pandas", "matplotlib", "rich")
    imports = "\n".join(f"import dpbench.{module}" for module in MODULES)
    code = f"import sys\n{imports}\nprint([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("words", [["show"], ["compare"], ["compare", "--json"], ["compare", "again"]])
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
