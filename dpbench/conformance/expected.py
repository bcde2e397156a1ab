"""What an implementation is known to fail, declared in a file beside it: ``bk.py`` has ``bk.toml``.

A section for each ruling, in it the name of a check, or a pattern of names, and the reason::

    [refuses]
    "autograd/inside-a-script" = "no function mode sees inside torch.jit.script"

``also = "tape.toml"`` at the top takes over what another file says, given by its path from there. What a file does not
name is expected to be right. A verdict that is better than declared is as much of a difference as a
worse one, so that the file stays true.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from dpbench.conformance.verdict import Ruling, Verdict
from dpbench.errors import DpbenchError, unknown

ALSO = "also"
_LONGEST = 160
"""Characters of a reason that is taken from a message."""


@dataclass(frozen=True, slots=True)
class Known:
    """One entry."""

    pattern: str
    ruling: Ruling
    reason: str


@dataclass(frozen=True, slots=True)
class Expected:
    """All entries of one implementation; the first that matches a check counts."""

    known: tuple[Known, ...] = ()

    def of(self, check: str) -> Known | None:
        """The entry for a check; None where it is to be right."""
        return next((k for k in self.known if fnmatchcase(check, k.pattern)), None)

    def surprise(self, verdict: Verdict) -> str:
        """How a verdict differs from what is declared; empty if it does not."""
        known = self.of(verdict.check)
        ruling = known.ruling if known else Ruling.RIGHT
        if verdict.ruling is ruling:
            return ""
        if known is None:
            return f"{verdict.ruling}, not declared"
        return f"{verdict.ruling}, declared as {ruling}"

    def check_names(self, names: Iterable[str], where: str) -> None:
        """Raise for an entry that matches none of the checks ``names``."""
        names = list(names)
        for k in self.known:
            if not any(fnmatchcase(name, k.pattern) for name in names):
                raise unknown("check", k.pattern, names, f"Declared in {where}. See: dpbench list cases")


def declaration(verdicts: Iterable[Verdict]) -> str:
    """The text of a file that declares what was found, each with what was said or seen as its reason."""
    sections: dict[Ruling, list[str]] = {ruling: [] for ruling in Ruling if ruling is not Ruling.RIGHT}
    for verdict in verdicts:
        if verdict.ruling is not Ruling.RIGHT:
            entry = f"{json.dumps(verdict.check)} = {json.dumps(_reason(verdict), ensure_ascii=False)}"
            sections[verdict.ruling].append(entry)
    parts = ["\n".join([f"[{ruling}]", *entries]) for ruling, entries in sections.items() if entries]
    return "\n\n".join(["# Written by: dpbench verify --declare", *parts]) + "\n"


def _reason(verdict: Verdict) -> str:
    if verdict.message:
        text = " ".join(verdict.message.split())
        return text if len(text) <= _LONGEST else text[:_LONGEST].rsplit(" ", 1)[0] + " ..."
    if verdict.ruling is Ruling.FREEZES:
        return f"no gradient of {', '.join(verdict.frozen)}"
    return f"off by {verdict.error:.1e} in {verdict.worst}"


def declared(source: Path | None) -> tuple[Expected, Path | None]:
    """What stands beside the file of an implementation, and where; nothing if there is no such file.

    Raises:
        DpbenchError: the file, or one that it names, cannot be read.
    """
    path = None if source is None else source.with_suffix(".toml")
    if path is None or not path.is_file():
        return Expected(), None
    found = _read(path)
    also = found.pop(ALSO, None)
    known = list(_entries(found, path))
    if also is not None:
        if not isinstance(also, str) or not (path.parent / also).is_file():
            raise DpbenchError(f"{path}: {ALSO} is {also!r}; expected the path of a file, from {path.parent} on")
        known += _entries(_read(path.parent / also), path.parent / also)
    return Expected(tuple(known)), path


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DpbenchError(f"{path} is no TOML: {error}; expected sections [refuses], [wrong], ...") from None


def _entries(found: Mapping[str, object], path: Path) -> Iterable[Known]:
    rulings = [str(ruling) for ruling in Ruling if ruling is not Ruling.RIGHT]
    for section, entries in found.items():
        if section not in rulings:
            raise unknown(f"section of {path}", section, rulings)
        if not isinstance(entries, dict):
            raise DpbenchError(f"{path}: {section} is {entries!r}; expected a section of names and reasons")
        for pattern, reason in entries.items():
            if not isinstance(reason, str) or not reason:
                raise DpbenchError(f"{path}: {pattern} in [{section}] is {reason!r}; expected the reason, in words")
            yield Known(pattern, Ruling(section), reason)
