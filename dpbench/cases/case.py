"""The cases of the conformance kit by name; each is a function that builds a small problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpbench.cases.problem import Problem


@dataclass(frozen=True, slots=True)
class Case:
    """One way in which a gradient can be wrong."""

    name: str
    """``family/what``, from the file and the function: ``convolution/circular``."""
    reason: str
    """Why it is a case, in one line."""
    source: str
    """Where it comes from: a public report, a paper, a model, a property."""
    build: Callable[[], Problem]
    refused: str = ""
    """Why no example has a gradient of its own here, so that a refusal is the only right answer."""
    needs: str = ""
    """A package that it needs beside torch."""


CASES: dict[str, Case] = {}
"""All of them, in the order of their files."""

Build = Callable[[], Problem]


def case(source: str, *, refused: str = "", needs: str = "") -> Callable[[Build], Build]:
    """Make a function a case: its name and its file's name it, its docstring is the reason."""

    def registered(build: Build) -> Build:
        family = build.__module__.rpartition(".")[2]
        name = f"{family}/{build.__name__.replace('_', '-')}"
        CASES[name] = Case(name, (build.__doc__ or "").strip(), source, build, refused, needs)
        return build

    return registered
