"""Implementations that write into their worker's line what no worker says, or close it, at a moment of their own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from dpbench.records import Outcome
from dpbench.results import read
from tests.faults.judged import Struck, after
from tests.faults.run import Run

FAULT = "a worker that writes rubbish"
TIMEOUT = 8

CODE = '''
"""Does as opacus does, and writes rubbish to every descriptor that is open."""
import gc, json, os, stat, time
from dpbench.interface import Supports
from dpbench.registry import load
TITLE, MODULES, SUPPORTS, PRIVATE = "Rubbish", "1", Supports(), True
ME = __file__
def tell(*lines):
    for d in map(int, os.listdir("/proc/self/fd")):
        try:
            if d > 2 and stat.S_ISSOCK(os.fstat(d).st_mode):
                for line in lines:
                    rest = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\\n"
                    while rest:
                        rest = rest[os.write(d, rest):]
        except OSError:
            pass
def result(name, **figures):
    return {"event": "result", "implementation": name, **figures}
def times(seconds):
    return {"seconds": seconds, "at": [0.0] * len(seconds), "started": 1.0, "warm_up": 3, "settled": True}
class Step:
    def __init__(self, step):
        self._step = step
    def __call__(self, batch, *, unit=None, mask=None):
        if LATE <= (not gc.isenabled()):
            DO
        return self._step(batch, unit=unit, mask=mask)
    def close(self):
        self._step.close()
def prepare(model, losses, clip):
    return Step(load("opacus").prepare(model, losses, clip))
'''
PASSED = '{"passed": True, "error": 0.0, "tolerance": 1e-8, "precision": "float64", "worst": ""}'
WHAT = {
    "no_json": 'tell(b"hello\\n")',
    "empty": 'tell(b"\\n")',
    "bytes": "tell(bytes(range(256)) + b'\\n')",
    "list": "tell([1, 2])",
    "number": "tell(7)",
    "deep": 'tell(b"[" * 200000 + b"\\n")',
    "digits": 'tell(b"1" * 100000 + b"\\n")',
    "no_event": 'tell({"implementation": ME})',
    "unknown_event": 'tell({"event": "victory"})',
    "stranger": 'tell({"event": "started", "implementation": "nobody"})',
    "half": 'tell(b\'{"event": "res\')',
    "half_and_death": 'tell(b\'{"event": "res\'); os._exit(0)',
    "death": "os._exit(0)",
    "huge": 'tell(b"x" * (1 << 26))',
    "facts": 'tell({"event": "facts", "facts": {"parameters": 1, "trainable": "all"}})',
    "done": 'tell({"event": "done"})',
    "imports": 'tell({"event": "done", "imported": 3})',
    "another": 'tell(result("nonprivate", **times([1e-9])), result("nonprivate", memory={"peak_live": 1.0}))',
    "anothers_end": 'tell({"event": "ended", "implementation": "bk", "outcome": "failed", "reason": "x"})',
    "nan": 'tell(result(ME, **times([float("nan")])), result(ME, memory={"peak_live": float("nan")}))',
    "negative": 'tell(result(ME, **times([-1.0])), result(ME, memory={"peak_live": -1.0}))',
    "zero": "tell(result(ME, **times([0.0])))",
    "none": "tell(result(ME, **times([])))",
    "text": 'tell(result(ME, **times(["fast"])))',
    "two": 'tell(result(ME, **times([1e-9])), result(ME, memory={"peak_live": 1.0}))',
    "passed": f'tell(result(ME, parity={PASSED}, coverage={{"asked": 9, "trained": 9}}))',
    "better": f'tell(result(ME, parity={{**{PASSED}, "error": 1.0}}, coverage={{"asked": 9, "trained": 9}}))',
    "outcome": 'tell({"event": "ended", "implementation": ME, "outcome": "splendid", "reason": "x"})',
    "surrogate": 'tell({"event": "ended", "implementation": ME, "outcome": "failed", "reason": chr(0xd800)})',
    "closed": "os.closerange(3, 256); time.sleep(1000)",
    "chatter": 'tell(*[{"event": "started", "implementation": ME}] * 100); return self(batch)',
    "stdout": "os.write(1, b'x' * 100000); print('{' * 100); raise ValueError('after all that')",
    "closed_stdout": "import sys; sys.stdout.close(); sys.stderr.close(); raise ValueError('unheard')",
    "stopped": "import signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "server_killed": "import signal; os.kill(os.getppid(), signal.SIGKILL); time.sleep(1000)",
    "left_behind": "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True); os._exit(3)",
}


def written(place: Path, what: str, late: bool) -> Path:
    """The file of an implementation that does ``what``, from the start or once it is timed."""
    path = place / f"{what}.py"
    path.write_text(CODE.replace("LATE", str(late)).replace("DO", WHAT[what]))
    return path


def strike(place: Path, draw: random.Random, whats: Sequence[str] = ()) -> Struck:
    """Some of them, or six that are drawn, in one run with three that are well."""
    struck = Struck()
    files = [written(place, what, draw.random() < 0.5) for what in whats or draw.sample(sorted(WHAT), 6)]
    run = Run(place, ["--timeout", str(TIMEOUT)], also=files)
    status, struck.seconds, struck.left = run.end()
    struck.expect(status == 3, f"exit {status}: {run.said[-500:]}")
    bad = {str(path) for path in files}
    path = run.file()
    assert path is not None
    well = [r for r in read(path).records if r.cell.implementation not in bad]
    struck.expect(len(well) == 6, f"{len(well)} of 6 others have a record")
    after(path, struck, lambda record: record.cell.implementation in bad)
    for record in read(path).records:
        if record.cell.implementation in bad:
            failed = record.outcome in (Outcome.FAILED, Outcome.TIMED_OUT) and record.reason
            struck.wrong += record.outcome is Outcome.OK
            struck.expect(failed, f"{Path(record.cell.implementation).stem} is {record.outcome}: {record.reason}")
    return struck
