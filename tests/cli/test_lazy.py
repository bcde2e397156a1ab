import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.cli.lazy import COMMANDS, Commands
from tests.records_for_tests import record, write


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there(name):
    assert Commands()[name].name == name


def test_help_lists_all_and_a_slip_is_told():
    shown = CliRunner().invoke(app, ["--help"]).output
    assert all(name in shown for name in COMMANDS)
    assert "Did you mean 'show'?" in CliRunner().invoke(app, ["shwo"]).output


@pytest.mark.parametrize("command", ["show", "table", "compare", "export --to csv", "export --to pytest-benchmark"])
def test_results_are_shown_without_torch(tmp_path, command):
    path = write(tmp_path, [record("bk")])
    heavy = {"torch", "pandas", "matplotlib"}
    at_exit = f"atexit.register(lambda: print(sorted({heavy} & set(sys.modules)), file=sys.stderr))"
    start = [sys.executable, "-c", f"import atexit, sys; {at_exit}; from dpbench.cli import main; main()"]
    done = subprocess.run([*start, *command.split(), str(path)], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
