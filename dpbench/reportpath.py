"""Where the files of ``report/`` are found."""

from __future__ import annotations

from pathlib import Path


def find(name: str) -> Path:
    """A file of ``report/``: that of the checkout, or the one that came with dpbench."""
    package = Path(__file__).parent
    checkout = package.parent / "report"
    place = checkout if (package.parent / "pyproject.toml").is_file() else package / "report"
    return place / name
