"""Values of options, several of them separated by commas."""

from __future__ import annotations

import re
from typing import Any

List = list[str] | None
"""What an option that may be given several times holds."""


def models(given: List) -> List:
    """Model specifications, separated by commas outside of brackets."""
    if not given:
        return None
    return [part.strip() for text in given for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def values(given: List, kind: type[int] | type[float] = int) -> list[Any] | None:
    """Values separated by commas, numbers as numbers; what is none stays for the suite to complain of."""
    if not given:
        return None
    return [_number(part.strip(), kind) for text in given for part in text.split(",")]


def _number(text: str, kind: type[int] | type[float]) -> Any:
    try:
        return kind(text)
    except ValueError:
        return text
