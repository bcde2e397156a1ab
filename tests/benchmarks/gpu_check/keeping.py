"""The results file of a check: JSON lines, each on the disk before the next answer is waited for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpbench.records import plain
from tests.benchmarks.gpu_check.driver import Answered


class Kept:
    """An open results file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def header(self, **values: Any) -> None:
        """The first line."""
        self._line({"kind": "header", "started": datetime.now(UTC).isoformat(timespec="seconds"), **values})

    def answered(self, one: Answered) -> None:
        """One answer."""
        self._line({"kind": "answer", "check": one.check, "seconds": round(one.seconds, 3), **asdict(one.answer)})

    def end(self, **values: Any) -> None:
        """The last line: without it the run was cut off."""
        self._line({"kind": "end", **values})

    def _line(self, values: Mapping[str, Any]) -> None:
        rest = memoryview(json.dumps(plain(dict(values))).encode() + b"\n")
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        os.fsync(self._descriptor)


@contextmanager
def kept(path: Path) -> Iterator[Kept]:
    """A new file; what was there before is an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        yield Kept(descriptor)
    finally:
        os.close(descriptor)
