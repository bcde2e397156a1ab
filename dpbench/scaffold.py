"""What a repository begins with: a suite, what its gate lets pass, and workflows. No torch.

The texts are files in ``dpbench/starting``. In them ``@name@`` stands for a value; a paragraph that names a value
which is not there is left out.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpbench.errors import DpbenchError
from dpbench.rules import FILE, TABLE

TEMPLATES = Path(__file__).parent / "starting"
WORKFLOWS = Path(".github") / "workflows"
USUAL = "bk_mixopt"
"""What a model is trained with where no implementation is given."""

_NAME = re.compile(r"@(\w+)@")


def scaffold(directory: Path, model: str | None = None, implementation: str | None = None) -> dict[Path, str]:
    """What is to be written into ``directory``: texts by path, relative to it.

    pyproject.toml is what is there and the rules after it; it is left out where it has rules already.

    Raises:
        DpbenchError: its pyproject.toml cannot be read, or takes no table.
    """
    values = {"implementations": ", ".join(map(json.dumps, _measured(model, implementation)))}
    if model is not None:
        values["model"] = json.dumps(model)
    if implementation is not None:
        values["own"] = shlex.quote(implementation)
    before = _text(directory / FILE)
    if project := _installed(directory, _parsed(before, directory / FILE)):
        values["project"] = project
    texts = {Path("suites", "ci.toml"): filled(_template("ci.toml" if model is None else "ci-model.toml"), values)}
    after = with_rules(before, directory / FILE)
    if after is not None:
        texts[FILE] = after
    for name in ("dpbench.yml", "dpbench-nightly.yml"):
        texts[WORKFLOWS / name] = filled(_template(name), values)
    return texts


def filled(template: str, values: Mapping[str, str]) -> str:
    """A template with its values, without the paragraphs that lack one."""
    paragraphs = [p for p in template.split("\n\n") if set(_NAME.findall(p)) <= values.keys()]
    return _NAME.sub(lambda found: values[found[1]], "\n\n".join(paragraphs))


def with_rules(text: str, path: Path) -> str | None:
    """A pyproject.toml with the rules after it, all else as it is; None where it has rules.

    Raises:
        DpbenchError: it is no TOML, or takes no table of that name.
    """
    found: Any = _parsed(text, path)
    for key in TABLE.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    if found is not None:
        return None
    newline = "\r\n" if "\r\n" in text else "\n"
    between = "" if not text else newline if text.endswith("\n") else 2 * newline
    after = text + between + _template("gate.toml").replace("\n", newline)
    try:
        tomllib.loads(after)
    except tomllib.TOMLDecodeError as error:
        raise DpbenchError(
            f"{path} takes no [{TABLE}] at its end ({error}); expected tables there, not tool = {{...}} or "
            f"tool.dpbench = {{...}}: write them as tables, and run dpbench init again"
        ) from None
    return after


def _measured(model: str | None, implementation: str | None) -> list[str]:
    """What a model costs is said beside its own training; an implementation is held against itself."""
    return [*(["nonprivate"] if model is not None else []), implementation or USUAL]


def _installed(directory: Path, pyproject: Mapping[str, Any]) -> str:
    """What pip is to install of a project."""
    is_package = pyproject.keys() & {"project", "build-system"} or (directory / "setup.py").is_file()
    requirements = "requirements.txt"
    parts = [f"-r {requirements}"] if (directory / requirements).is_file() else []
    return " ".join([*parts, *(["-e ."] if is_package else [])])


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode() if path.is_file() else ""
    except UnicodeDecodeError as error:
        raise DpbenchError(f"{path} is not TOML: {error}") from None


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DpbenchError(f"{path} is not TOML: {error}; mend it, and run dpbench init again") from None
