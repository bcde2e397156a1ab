"""A run in processes of its own, which can be found again by a word in their environment, whatever they do."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil

ROOT = Path(__file__).parent.parent.parent
MODEL = "synthetic:mlp(width=8,depth=2)"
BATCHES = (4, 8)
NAMES = ("nonprivate", "bk", "opacus")
WORD = "DPBENCH_FAULT"
LONG = 300.0
"""Seconds after which a process is called stuck."""


class Run:
    """``dpbench run`` of six small cells, or of what ``options`` say, with its results and its files in ``place``."""

    def __init__(
        self,
        place: Path,
        options: Sequence[str] = (),
        *,
        also: Sequence[Path] = (),
        resume: Path | None = None,
        results: Path | None = None,
        out: IO[bytes] | None = None,
        before: Callable[[], None] | None = None,
        temporary: Path | None = None,
    ) -> None:
        self.place, self.results = place, results or place / "results"
        self.temporary = temporary or place / "tmp"
        self.temporary.mkdir(parents=True, exist_ok=True)
        self._word = uuid.uuid4().hex
        self._out = place / f"{self._word}.out"
        asked = ["--model", MODEL, "--batch", ",".join(map(str, BATCHES)), "--results", str(self.results)]
        asked += ["--impl", ",".join([*NAMES[1:], *map(str, also)]), "--rounds", "2", "--budget", "0.01"]
        command = ["run", *(["--resume", str(resume)] if resume else asked), *options]
        code = "from dpbench.cli import main; main()"
        environment = {**os.environ, WORD: self._word, "TMPDIR": str(self.temporary), "OMP_NUM_THREADS": "1"}
        with self._out.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, *command],
                stdout=out or said,
                stderr=out or subprocess.STDOUT,
                env={**environment, "PYTHONPATH": str(ROOT)},
                cwd=place,
                start_new_session=True,
                preexec_fn=before,
            )

    @property
    def said(self) -> str:
        """Its stdout and stderr."""
        return self._out.read_text(errors="replace")

    def processes(self) -> list[psutil.Process]:
        """All that are alive of it."""
        return [p for p in psutil.process_iter() if _carries(p, self._word)]

    def server(self) -> psutil.Process | None:
        """The one that forks workers."""
        found = [p for p in self.processes() if _serves(p, self.process.pid)]
        return found[0] if found else None

    def workers(self) -> list[psutil.Process]:
        """Those that it has forked."""
        server = self.server()
        with suppress(psutil.NoSuchProcess):
            return server.children() if server else []
        return []

    def wait_for(self, what: Callable[[], object]) -> bool:
        """Until there is ``what``; False if the run has ended before."""
        while self.process.poll() is None:
            if what():
                return True
            time.sleep(0.005)
        return False

    def end(self) -> tuple[int, float, int]:
        """Exit status, seconds until the last process was gone, and how many had to be ended as they did not."""
        since = time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(LONG)
        stuck = self.process.poll() is None
        until = time.monotonic() + 10
        while (left := self.processes()) and not stuck and time.monotonic() < until:
            time.sleep(0.02)
        took = time.monotonic() - since
        for p in left:
            with suppress(psutil.NoSuchProcess):
                p.kill()
        return self.process.wait(), took, len(left)

    def file(self) -> Path | None:
        """Its results."""
        found = sorted(self.results.glob("*.jsonl"))
        return found[0] if found else None

    def moment(self, draw: random.Random, most: float = 2.5) -> bool:
        """Let it run for a while, mostly from when it has a file; False if it has ended meanwhile."""
        if draw.random() < 0.8:
            self.wait_for(self.file)
        return self.for_a_while(draw, most)

    def for_a_while(self, draw: random.Random, most: float) -> bool:
        """Let it run for up to so many seconds; False if it has ended meanwhile."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(draw.uniform(0, most))
        return self.process.poll() is None

    def moment_of_a_worker(self, draw: random.Random) -> psutil.Process | None:
        """One of its workers, at a moment at which there is one; None if the run ended before."""
        self.wait_for(self.file)
        self.for_a_while(draw, 2.0)
        found: list[psutil.Process] = []
        self.wait_for(lambda: found.extend(self.workers()) or found)
        return found[0] if found else None


def send(process: psutil.Process | None, number: signal.Signals) -> bool:
    """Whether it was there to be sent a signal."""
    with suppress(psutil.NoSuchProcess):
        if process is not None:
            process.send_signal(number)
            return True
    return False


def files_in(directory: Path) -> Iterator[Path]:
    """All files below."""
    return (p for p in directory.rglob("*") if p.is_file())


def _carries(process: psutil.Process, word: str) -> bool:
    with suppress(psutil.Error, OSError):
        return process.environ().get(WORD) == word and process.status() != psutil.STATUS_ZOMBIE
    return False


def _serves(process: psutil.Process, parent: int) -> bool:
    # It may end at any time.
    with suppress(psutil.Error):
        return process.ppid() == parent and "'serve'" in " ".join(process.cmdline())
    return False
