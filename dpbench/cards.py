"""Accelerator cards: their memory, and the speeds that their makers publish.

The figures stand in ``devices.toml``, each with its source. This module knows nothing of torch, so that a bound
can be given for a card that is not there.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dpbench.errors import DpbenchError, unknown

CONTEXT = 2**29
"""Bytes that CUDA's context and the kernels that it loads take of a card's memory before any tensor does.

An estimate, for it depends on the card and on the kernels in use: while all of them were loaded at the start torch
took 0.76 GiB (pytorch/pytorch issue 34323, 2020), and since they are loaded when first called it takes less.
"""

FORMATS = {"fp64": "fp64", "fp32": "fp32", "tf32": "tf32", "bf16": "bf16", "fp16": "fp16", "amp-bf16": "bf16"}
"""The number format whose peak a precision can reach: autocast multiplies matrices in bfloat16."""


@dataclass(frozen=True, slots=True)
class Card:
    """One kind of accelerator, with published peaks: what it can do at best, not what it does."""

    name: str
    memory: int
    """Bytes that a program sees in total, its context included."""
    bandwidth: float
    """Of the card's memory, in bytes/s."""
    launch: float
    """Seconds between the starts of two short kernels that are launched back to back."""
    peaks: Mapping[str, float] = field(hash=False)
    """FLOP/s by number format, dense: fp32 without tensor cores, the shorter formats with them."""
    torch_names: tuple[str, ...]
    """Names that ``torch.cuda.get_device_name`` returns for it, or globs of them."""
    source: str
    """Where the peaks are published: address and title."""
    notes: str = ""
    """What was halved, estimated or not read again."""
    reserved: int = CONTEXT
    """Bytes of the memory that tensors cannot have."""
    threads: int | None = None
    """Of a CPU, how many it was measured with."""

    @property
    def capacity(self) -> int:
        """What is left for tensors, in bytes."""
        return self.memory - self.reserved

    def has(self, precision: str) -> bool:
        """Whether it multiplies in that precision."""
        return FORMATS.get(precision) in self.peaks

    def peak(self, precision: str) -> float:
        """The most FLOP/s at that precision, in matrix products.

        Raises:
            DpbenchError: an unknown precision, or one that the card lacks.
        """
        if precision not in FORMATS:
            raise unknown("precision", precision, FORMATS)
        wanted = FORMATS[precision]
        if wanted not in self.peaks:
            has = ", ".join(p for p, f in FORMATS.items() if f in self.peaks and p not in ("fp16", "fp64"))
            others = ", ".join([c.name for c in cards().values() if wanted in c.peaks][:3])
            raise DpbenchError(
                f"{self.name} has no {precision}; it has {has}. "
                f"Take one of these, or a card with {precision}, such as {others}."
            )
        return self.peaks[wanted]


HERE = "here"
"""What a calibrated machine is called as a card; a device other than the CPU follows: ``here:cuda``."""


def calibrated_name(device: str) -> str:
    """The card that a kind of device of this machine is, once it is calibrated."""
    return HERE if device == "cpu" else f"{HERE}:{device}"


def calibration_file(name: str) -> Path:
    """Where a calibration is kept: ``$XDG_CACHE_HOME/dpbench``, by default ``~/.cache/dpbench``."""
    cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache_home) / "dpbench" / f"{name.replace(':', '-')}.json"


def keep(card: Card) -> Path:
    """Write a calibrated card, whole or not at all; where it is."""
    path = calibration_file(card.name)
    fresh = path.with_suffix(f".{os.getpid()}")
    text = json.dumps({f.name: _plain(getattr(card, f.name)) for f in fields(card)}, indent=1)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise DpbenchError(
            f"the calibration cannot be kept in {path}: {error.strerror}. Give another place in XDG_CACHE_HOME."
        ) from None
    return path


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _calibrated(name: str) -> Card:
    path = calibration_file(name)
    device = name.partition(":")[2] or "cpu"
    if not path.is_file():
        raise DpbenchError(f"this machine is not calibrated ({device}); run: dpbench calibrate --device {device}")
    try:
        found = _card(json.loads(path.read_text(encoding="utf-8")))
        figures = (found.bandwidth, found.launch, found.memory, *found.peaks.values())
        if found.name != name or not all(isinstance(x, int | float) and 0 < x < float("inf") for x in figures):
            raise ValueError("a name or figure that no measurement gives")
        return found
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DpbenchError(f"{path} holds no calibration ({error}); run again: dpbench calibrate") from None


def _card(row: dict[str, Any]) -> Card:
    return Card(**row | {"peaks": MappingProxyType(row["peaks"]), "torch_names": tuple(row["torch_names"])})


@cache
def cards() -> dict[str, Card]:
    """Every card, by name."""
    rows = tomllib.loads(Path(__file__).with_name("devices.toml").read_text(encoding="utf-8"))["card"]
    return {row["name"]: _card(row) for row in rows}


def card(name: str) -> Card:
    """The card of that name, in upper or lower case; ``here`` is this machine, once it is calibrated.

    Raises:
        DpbenchError: there is none, or no calibration.
    """
    here, _, device = name.lower().partition(":")
    if here == HERE:
        return _calibrated(calibrated_name(device.partition(":")[0] or "cpu"))
    for known, found in cards().items():
        if known.lower() == name.lower():
            return found
    raise unknown("card", name, cards())


def of_device(torch_name: str) -> Card | None:
    """The card that torch calls so, None if its peaks are not known."""
    for found in cards().values():
        if any(fnmatchcase(torch_name, pattern) for pattern in found.torch_names):
            return found
    return None
