"""Which implementations and checks are meant by what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from dpbench.conformance.checks import Check
from dpbench.errors import DpbenchError, EmptySelection
from dpbench.registry import load
from dpbench.suite import spelled_out


def present(asked: Sequence[str], known: Sequence[str], say: Callable[[str], None]) -> list[str]:
    """The implementations that are asked for, without those of ``all`` and patterns whose library is missing.

    Raises:
        DpbenchError: one that is named is missing; says how to get it.
    """
    found = []
    for name in dict.fromkeys(spelled_out(asked, known)):
        if needs := getattr(load(name), "NEEDS", ""):
            if name in asked:
                raise DpbenchError(f"{name} needs {needs}")
            say(f"left out: {name} needs {needs}")
        else:
            found.append(name)
    if not found:
        raise EmptySelection(
            f"--impl {','.join(asked)}: nothing of that is installed. See: dpbench list implementations"
        )
    return found


def selected(known: Iterable[Check], asked: Sequence[str] | None) -> list[Check]:
    """The checks that names, families or patterns stand for, in their order.

    Raises:
        EmptySelection: one stands for none; says what there is.
    """
    known = list(known)
    if not asked:
        return known
    patterns = [part.strip() for text in asked for part in text.split(",")]
    for pattern in patterns:
        if not any(_stands_for(pattern, c.name) for c in known):
            families = dict.fromkeys(c.name.partition("/")[0] for c in known)
            raise EmptySelection(
                f"--case {pattern!r} matches none of {len(known)} cases; expected a name, a pattern or a family: "
                f"{', '.join(families)}. See: dpbench list cases"
            )
    return [c for c in known if any(_stands_for(pattern, c.name) for pattern in patterns)]


def _stands_for(pattern: str, name: str) -> bool:
    return fnmatchcase(name, pattern) or name.startswith(f"{pattern}/")
