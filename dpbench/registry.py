"""How implementations are found: installed ones by name, others by the path of their file."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from dpbench.entrypoints import ABLATION, LIBRARY, asked_for, points
from dpbench.errors import DpbenchError, unknown
from dpbench.interface import Implementation, Supports

DECLARED = {"TITLE": str, "MODULES": str, "SUPPORTS": Supports, "PRIVATE": bool}
"""What an implementation says of itself."""
LARGEST_STABILITY = 0.1
"""Libraries use 1e-6 or 0.01; a larger one would make anything pass for right."""


def available() -> dict[str, str]:
    """Names and titles of the implementations that are installed: what ``all`` stands for."""
    return _titled("all")


def libraries() -> dict[str, str]:
    """Names and titles of other libraries as implementations, with what is to be installed where they are not."""
    return _titled(f"{LIBRARY}*")


def ablations() -> dict[str, str]:
    """Names and titles of algorithms with a part taken away, to see what that is worth."""
    return _titled(f"{ABLATION}*")


def _titled(pattern: str) -> dict[str, str]:
    return {name: load(name).TITLE for name in sorted(asked_for(pattern, points()))}


@cache
def load(name: str) -> Implementation:
    """An implementation by its entry point's name, or from ``path/to/file.py``.

    Raises:
        DpbenchError: if there is none of that name, or what is there is no implementation.
    """
    if name.endswith(".py"):
        found: Any = _from_file(Path(name))
    elif name in points():
        found = points()[name].load()
    else:
        raise unknown("implementation", name, points(), "Or give the path of a .py file.")
    for attribute, kind in DECLARED.items():
        if not isinstance(getattr(found, attribute, None), kind):
            raise DpbenchError(
                f"implementation {name} has {attribute} = {getattr(found, attribute, None)!r}; expected a "
                f"{kind.__name__}. See 'Your own implementation' in the README for a complete one."
            )
    stability = getattr(found, "STABILITY", 0.0)
    if not isinstance(stability, float) or not 0 <= stability <= LARGEST_STABILITY:
        raise DpbenchError(
            f"implementation {name} has STABILITY = {stability!r}; expected a float up to {LARGEST_STABILITY:g}, the s "
            "of its clipping factor min(1, R / (||g_i|| + s)), or nothing"
        )
    if not callable(getattr(found, "prepare", None)):
        raise DpbenchError(f"implementation {name} has no prepare(model, losses, clip); see the README")
    implementation: Implementation = found
    return implementation


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise DpbenchError(f"no file {path}; expected the path of a Python file with {', '.join(DECLARED)} and prepare")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise DpbenchError(f"{path} could not be imported: {type(error).__name__}: {error}") from error
    return module


def source_file(name: str) -> Path | None:
    """The file that an implementation comes from; None where there is none."""
    found: Any = load(name)
    path = inspect.getsourcefile(found if isinstance(found, ModuleType) else type(found))
    return Path(path) if path else None


def source_hash(name: str) -> str:
    """Twelve hexadecimal digits that change whenever the implementation's source does, or a library's version."""
    path = source_file(name)
    text = path.read_bytes() if path else repr(load(name)).encode()
    version = load(name).TITLE.encode() if name.startswith(LIBRARY) else b""
    return hashlib.sha256(text + version).hexdigest()[:12]
