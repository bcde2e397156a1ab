"""The two sides of a comparison: two implementations, or one source tree and another."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dpbench.errors import DpbenchError


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What is run on one side."""

    name: str
    """As it was asked for."""
    implementation: str | None = None
    """In place of the suite's."""
    checkout: Path | None = None
    """The source tree that workers run; None: what is installed."""

    instead_of: tuple[Path, Path] | None = None
    """``(a, b)``: what PYTHONPATH has within a is taken in b."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What workers have in their environment besides: the checkout comes before what is installed."""
        if self.checkout is None:
            return {}
        inherited = [Path(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        places = [self.checkout, self.checkout / "src", *map(self._moved, inherited)]
        return {"PYTHONPATH": os.pathsep.join(map(str, places))}

    def _moved(self, path: Path) -> Path:
        if self.instead_of is None or not path.resolve().is_relative_to(self.instead_of[0]):
            return path
        return self.instead_of[1] / path.resolve().relative_to(self.instead_of[0])


def sides(base: str, new: str) -> tuple[Side, Side]:
    """Two names or files of implementations, or two directories.

    Raises:
        DpbenchError: one of either kind, or a directory without source.
    """
    found = [_side(text) for text in (base, new)]
    if (found[0].checkout is None) is not (found[1].checkout is None):
        raise DpbenchError(
            f"got {base} and {new}, expected two implementations (names or .py files) or two checkouts (directories)"
        )
    return found[0], found[1]


def _side(text: str) -> Side:
    path = Path(text)
    if path.suffix == ".py" and not path.is_file():
        raise DpbenchError(f"no file {text}; expected the path of an implementation, a name, or a checkout")
    if not path.is_dir():
        return Side(name=text, implementation=text)
    if not any(path.rglob("*.py")):
        raise DpbenchError(f"there is no .py file in {text}, expected a checkout with the source to run")
    return Side(name=text, checkout=path.resolve())
