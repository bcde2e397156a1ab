import importlib

from typer.testing import CliRunner

from dpbench.cli import COMMANDS, app


def test_every_command_is_listed_and_has_a_help_of_its_own():
    listed = CliRunner().invoke(app, ["--help"]).output
    for name, function in COMMANDS.items():
        said = getattr(importlib.import_module(f"dpbench.cli.{name}"), function).__doc__.splitlines()[0]
        assert f" {name} " in listed
        shown = CliRunner().invoke(app, [name, "-h"]).output
        assert f"dpbench {name}" in shown or f" {name} " in shown
        assert said.split()[0] in shown


def test_a_mistyped_command_is_answered_with_the_nearest():
    done = CliRunner().invoke(app, ["shwo"])
    assert done.exit_code == 2
    assert "No such command 'shwo'. Did you mean 'show'?" in done.output
