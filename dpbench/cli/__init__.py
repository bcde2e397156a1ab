"""The command ``dpbench``: one file for each of its commands, which parses, calls and prints."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from dpbench.errors import DpbenchError

COMMANDS = {
    "run": "run",
    "list": "list_",
    "show": "show",
    "table": "table",
    "compare": "compare",
    "ab": "ab",
    "gate": "gate",
    "verify": "verify",
    "predict": "predict",
    "layers": "layers",
    "maxbatch": "maxbatch",
    "advise": "advise",
    "calibrate": "calibrate",
    "system": "system",
}
"""The function of each command, in the file of its own name."""

SETTINGS: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False}


class Commands(TyperGroup):
    """Imports the file of a command when that is asked for, so that none waits for what another needs."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Only their names are looked at here, where one was mistyped.
        self.commands = dict.fromkeys(COMMANDS, self)

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, as the help has them."""
        return [*COMMANDS]  # list is a module here, as soon as that command was asked for

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        alone = typer.Typer(**SETTINGS)
        alone.command(cmd_name)(getattr(import_module(f"dpbench.cli.{cmd_name}"), COMMANDS[cmd_name]))
        return typer.main.get_command(alone)


app = typer.Typer(
    name="dpbench",
    cls=Commands,
    help="Benchmark implementations of the DP-SGD gradient: is it right, how fast is it, what memory does it need?",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    **SETTINGS,
)


@app.callback(invoke_without_command=True)
def version_option(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version and exit.")
) -> None:
    """Benchmark implementations of the DP-SGD gradient: is it right, how fast is it, what memory does it need?"""
    if version:
        from importlib.metadata import version as of

        typer.echo(f"dpbench {of('dpsgd-bench')}")
        raise typer.Exit


def main() -> None:
    """Run the command; a mistake of the user's is one message and no traceback."""
    try:
        app()
    except DpbenchError as error:
        print(f"dpbench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Whoever read our output (head, less) has gone; the end of the process would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(0)
    except OSError as error:
        # A full disk, a directory that may not be written to: said in a line, as mistakes are.
        print(f"dpbench: {error.filename or 'stdout'}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
