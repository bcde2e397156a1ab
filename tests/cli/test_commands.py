import pytest
from typer.testing import CliRunner

from dpbench.cli import COMMANDS, app


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_found_and_has_a_help_of_its_own(name):
    done = CliRunner().invoke(app, [name, "-h"])
    assert done.exit_code == 0
    assert f"Usage: dpbench {name}" in done.output


def test_all_commands_are_listed():
    listed = CliRunner().invoke(app, ["--help"]).output
    assert [name for name in COMMANDS if f" {name} " not in listed] == []


def test_a_mistyped_command_is_answered_with_the_nearest():
    done = CliRunner().invoke(app, ["shwo"])
    assert done.exit_code == 2
    assert "No such command 'shwo'. Did you mean 'show'?" in done.output
