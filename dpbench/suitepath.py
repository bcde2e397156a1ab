"""Where suites are found."""

from __future__ import annotations

from pathlib import Path

from dpbench.errors import DpbenchError, unknown


def find(name: str) -> Path:
    """The file of a suite: a path, or a name among :func:`available`."""
    if name.endswith(".toml") or "/" in name:
        if not Path(name).is_file():
            raise DpbenchError(f"there is no file {name}, expected a suite; see: dpbench list suites")
        return Path(name)
    files = available()
    if name not in files:
        raise unknown("suite", name, files, f"See: dpbench list suites. Your own goes into ./suites/{name}.toml")
    return files[name]


def available() -> dict[str, Path]:
    """Suites by name: the user's own in ``./suites``, then those that came with dpbench."""
    package = Path(__file__).parent
    places = [Path("suites"), package / "suites"]
    if (package.parent / "pyproject.toml").is_file():
        places.insert(1, package.parent / "suites")
    files: dict[str, Path] = {}
    for place in places:
        for path in sorted(place.glob("*.toml")):
            files.setdefault(path.stem, path)
    return files
