"""The command ``dpbench``: one file for each of its commands, which parses, calls and prints."""

from __future__ import annotations

import sys

import typer

from dpbench.cli.lazy import Group
from dpbench.cli.said import say, silence
from dpbench.errors import DpbenchError

app = typer.Typer(
    name="dpbench",
    cls=Group,
    help="Benchmark implementations of the DP-SGD gradient: is it right, how fast is it, what memory does it need?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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
        say(f"dpbench: {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Whoever read our output (head, less) has gone; the end of the process would complain again.
        silence(sys.stdout)
        sys.exit(0)
    except OSError as error:
        # A full disk, a directory that may not be written to: said in a line, as mistakes are.
        say(f"dpbench: {error.filename or 'stdout'}: {error.strerror}")
        silence(sys.stdout)
        sys.exit(2)
