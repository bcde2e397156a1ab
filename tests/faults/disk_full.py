"""No room for the results: a limit on their size, or a disk of 64 kB where one can be mounted."""

from __future__ import annotations

import os
import random
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.faults.judged import Struck, finished, judge
from tests.faults.run import Run

FAULT = "a full disk behind the results"


def strike(place: Path, draw: random.Random, mounting: bool = True) -> Struck:
    struck = Struck()
    with disk(place / "results", 64) if mounting else no_disk() as small:
        room = draw.randrange(20_000)
        if small:
            (place / "results" / "junk").write_bytes(b"x" * (64 * 1024 - (room // 4096) * 4096))
        limit = None if small else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        run = Run(place, ["--json"], before=limit)
        status, struck.seconds, struck.left = run.end()
        struck.expect(status in (0, 2), f"exit {status}: {run.said[-500:]}")
        if status == 2:
            way = "make room first" if run.file() is None else "make room and go on with: dpbench run --resume"
            struck.expect(way in run.said, f"no way on: {run.said[-500:]}")
            struck.expect("Traceback" not in run.said, run.said[-500:])
        struck.expect(run.file() or not finished(run), "cells were told of and there is no file")
        if small:
            (place / "results" / "junk").unlink()
        judge(run, struck)
    return struck


@contextmanager
def disk(at: Path, kilobytes: int) -> Iterator[bool]:
    """A small one; False, and none, where nobody lets us mount it."""
    at.mkdir(parents=True, exist_ok=True)
    mounted = False
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        with suppress(OSError):
            command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(at)]
            mounted = subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(at)], check=True)


@contextmanager
def no_disk() -> Iterator[bool]:
    yield False
