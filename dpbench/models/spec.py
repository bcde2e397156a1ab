"""Model names: ``family:name(option=value, ...)``, ``path/to/config.json`` and ``path/to/file.py:build``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpbench.errors import DpbenchError, Refused, unknown
from dpbench.records import Workload

FAMILIES = ("transformers", "timm", "torchvision", "synthetic", "layer", "case")


@dataclass(frozen=True)
class Spec:
    """A model's name taken apart."""

    family: str
    """One of FAMILIES, or ``file`` for a user's own."""
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reads_values(self) -> bool:
        """Whether building it may read values of tensors, as what users and cases do is theirs."""
        return self.family in ("file", "case")

    def take(self, known: Iterable[str]) -> dict[str, Any]:
        """The options, after checking that each is known."""
        names = set(known)
        for option in self.options:
            if option not in names:
                raise unknown(f"option of {self.family}:{self.name}", option, names)
        return dict(self.options)

    def settle(self, option: str, axis: str, workload: Workload) -> Any:
        """What an axis of the workload and the model's own option for it come to; None if neither is given.

        Raises:
            DpbenchError: if they contradict each other.
        """
        own, asked = self.options.get(option), getattr(workload, axis)
        if own is not None and asked is not None and own != asked:
            raise DpbenchError(
                f"{self.family}:{self.name} is given {option}={own} and {axis}={asked}, "
                "which mean the same; leave one out"
            )
        return asked if own is None else own

    def refuse(self, workload: Workload, *axes: str) -> None:
        """Raise if one of these axes is set, as it would change nothing."""
        for axis in axes:
            if getattr(workload, axis) not in (None, False):
                raise Refused(f"{self.family}:{self.name} has no axis {axis}; leave it out")


def parse(text: str) -> Spec:
    """Take a model's name apart; raises DpbenchError that says what is wrong with it."""
    match = re.fullmatch(r"(?P<head>[^()]+?)(?:\((?P<options>.*)\))?", text.strip(), flags=re.S)
    if match is None:
        raise DpbenchError(f"model {text!r} is not of the form family:name(option=value, ...)")
    head, options = match["head"].strip(), _options(text, match["options"] or "")
    family, colon, name = head.partition(":")
    if family not in FAMILIES and head.endswith(".json"):
        return Spec("transformers", head, options)
    if family not in FAMILIES and ".py" in head:
        return Spec("file", head, options)
    if family not in FAMILIES:
        hint = f"Got {text!r}; expected family:name, a .json or file.py:build."
        raise unknown("model family", family, FAMILIES, hint)
    if not colon or not name:
        raise DpbenchError(f"model {text!r} names no model; expected {family}:name. See: dpbench list models")
    return Spec(family, name, options)


def _options(text: str, options: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in re.split(r",(?![^\[(]*[\])])", options):
        if not part.strip():
            continue
        name, equals, value = part.partition("=")
        if not equals:
            raise DpbenchError(f"option {part.strip()!r} of model {text!r} has no value; expected name=value")
        if name.strip() in found:
            raise DpbenchError(f"option {name.strip()!r} of model {text!r} is given twice; expected once")
        found[name.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    lowered = text.lower()
    if lowered in ("true", "false", "none"):
        return None if lowered == "none" else lowered == "true"
    if text.startswith("[") and text.endswith("]"):
        return [_value(item.strip()) for item in text[1:-1].split(",") if item.strip()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("'\"")
