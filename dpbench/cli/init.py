"""``dpbench init``: a suite, the rules of the gate and workflows to begin with."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from dpbench.errors import DpbenchError
from dpbench.rules import FILE, TABLE
from dpbench.scaffold import scaffold
from dpbench.suite import spelled_out
from dpbench.sweep import names


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIRECTORY]", help="The root of a repository.", file_okay=False)
    ] = Path(),
    model: Annotated[str | None, typer.Option("--model", "-m", help="Your model: mine.py:build, or any other.")] = None,
    implementation: Annotated[
        str | None, typer.Option("--impl", "-i", help="Your implementation: its file in DIRECTORY, or its name.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over files that are there; rules that are there stay.")
    ] = False,
) -> None:
    """Write a suite, the rules of a gate and two workflows for GitHub to begin with. What is there stays as it is.

    \b
    Exit codes:
      0  written, or there already
      2  a mistake in what was asked
    """
    if model is not None:
        model = _model(model, directory)
    if implementation is not None and implementation.endswith(".py"):
        implementation = _inside(implementation, directory, "--impl")
    elif implementation is not None:
        spelled_out([implementation], names())
    texts = scaffold(directory, model, implementation)
    if FILE not in texts:
        typer.echo(f"kept     {directory / FILE}: it has [{TABLE}]")
    for relative, text in texts.items():
        path = directory / relative
        if path.exists() and relative != FILE and not force:
            typer.echo(f"kept     {path}: it is there (--force writes over it)")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        typer.echo(f"written  {path}{f': [{TABLE}] at its end' if relative == FILE else ''}")
    typer.echo("\n".join(["", *_next(directory, model, implementation)]))


def _model(model: str, directory: Path) -> str:
    from dpbench.models.spec import parse

    found = parse(model)
    if found.family != "file":
        return model
    file, colon, _ = found.name.rpartition(":")
    if not colon:
        raise DpbenchError(f"--model: {model} names no function; expected path/to/file.py:build")
    return _inside(file, directory, "--model") + model.strip().removeprefix(file)


def _inside(file: str, directory: Path, option: str) -> str:
    """A file as commands name it that run in ``directory``, as CI's do."""
    root = os.path.abspath(directory)
    path = os.path.relpath(os.path.join(root, file), root)
    if path.startswith(os.pardir) or not os.path.isfile(os.path.join(root, path)):
        raise DpbenchError(
            f"{option}: there is no file {file} in {directory}, expected one of the repository, by its path from there"
        )
    return Path(path).as_posix()


def _next(directory: Path, model: str | None, implementation: str | None) -> list[str]:
    """What to do now, in order."""
    steps = []
    if model is None and implementation is None:
        again = "or begin again with --force and --impl mine.py or --model mine.py:build"
        steps.append(("put your own into suites/ci.toml", again))
    if implementation is not None:
        verify = f"dpbench verify --impl {shlex.quote(implementation)}"
        steps.append((verify, "is it right? --declare writes down what it refuses, which CI then expects"))
    steps += [
        ("dpbench run ci --dry-run", "the cells; choose yours in suites/ci.toml"),
        ("git add .github pyproject.toml suites", "with your own files, and commit; results/ is one for .gitignore"),
        ("dpbench gate --base HEAD", "what CI will do, with the base of the pull request for HEAD"),
    ]
    width = max(len(what) for what, _ in steps)
    place = [] if directory == Path() else [f"in {directory}:"]
    root = _root_above(directory)
    aside = [f"GitHub reads workflows at the root of a repository alone, which is {root}: move .github there"]
    return ["next", *place, *(f"  {what:{width}}  {why}" for what, why in steps), *(["", *aside] if root else [])]


def _root_above(directory: Path) -> Path | None:
    """The root of the repository, where ``directory`` is within it."""
    above = directory.resolve()
    if (above / ".git").exists():
        return None
    return next((p for p in above.parents if (p / ".git").exists()), None)
