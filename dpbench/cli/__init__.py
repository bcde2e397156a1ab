"""The command ``dpbench``: one file for each of its commands, which parses, calls and prints."""

from __future__ import annotations

import os
import sys

import typer

from dpbench.cli.ab import ab
from dpbench.cli.advise import advise
from dpbench.cli.calibrate import calibrate
from dpbench.cli.compare import compare
from dpbench.cli.gate import gate
from dpbench.cli.layers import layers
from dpbench.cli.list import list_
from dpbench.cli.maxbatch import maxbatch
from dpbench.cli.predict import predict
from dpbench.cli.run import run
from dpbench.cli.show import show
from dpbench.cli.system import system
from dpbench.cli.table import table
from dpbench.cli.verify import verify
from dpbench.errors import DpbenchError

app = typer.Typer(
    name="dpbench",
    help="Benchmark implementations of the DP-SGD gradient: is it right, how fast is it, what memory does it need?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run)
app.command("list")(list_)
app.command("show")(show)
app.command("table")(table)
app.command("compare")(compare)
app.command("ab")(ab)
app.command("gate")(gate)
app.command("verify")(verify)
app.command("predict")(predict)
app.command("layers")(layers)
app.command("maxbatch")(maxbatch)
app.command("advise")(advise)
app.command("calibrate")(calibrate)
app.command("system")(system)


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
