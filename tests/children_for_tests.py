"""What a child does in the tests of processes: the kind of the job says how it behaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from dpbench.job import Job

Send = Any


def work(job: Job, send: Send) -> None:
    send({"event": "started", "implementation": "bk"})
    {
        "answer": answer,
        "kill": lambda send: os.kill(os.getpid(), signal.SIGKILL),
        "crash": lambda send: os.kill(os.getpid(), signal.SIGSEGV),
        "raise": raise_error,
        "hang": lambda send: time.sleep(600),
        "family": family,
        "greedy": greedy,
        "torn": torn,
        "exit": lambda send: os._exit(7),
        "import": import_something,
        "deserter": lambda send: desert(send, alone=True, stay=False),
        "exit_family": lambda send: desert(send, alone=False, stay=False),
        "away": lambda send: desert(send, alone=True, stay=True),
        "deaf": deaf,
        "loud": lambda send: os.write(2, b"x" * 1_000_000),
    }[job.kind](send)


def answer(send: Send) -> None:
    facts = {
        "pid": os.getpid(),
        "group": os.getpgid(0),
        "session": os.getsid(0),
        "parent": os.getppid(),
        "score": Path("/proc/self/oom_score_adj").read_text().strip() if sys.platform == "linux" else None,
        "torch": "torch" in sys.modules,
        "asks": os.environ.get("PYTORCH_NVML_BASED_CUDA_CHECK"),
        "threads": len(os.listdir("/proc/self/task")) if sys.platform == "linux" else None,
        "big": "x" * 300_000,
    }
    send({"event": "facts", "facts": facts})
    send({"event": "done", "imported": []})


def raise_error(send: Send) -> None:
    raise ValueError("the reason is here")


def family(send: Send) -> None:
    """A child with a child of its own, as a data loader has."""
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    send({"event": "facts", "facts": {"grandchild": grandchild.pid}})
    time.sleep(600)


def desert(send: Send, alone: bool, stay: bool) -> None:
    """A child of its own, in a session of its own if ``alone``, that is left behind unless they ``stay``."""
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    send({"event": "facts", "facts": {"grandchild": subprocess.Popen(command, start_new_session=alone).pid}})
    time.sleep(600 if stay else 0)
    os._exit(3)


def deaf(send: Send) -> None:
    """Closes everything that it was given, and lives on."""
    os.closerange(3, 256)
    time.sleep(600)


def greedy(send: Send) -> None:
    try:
        held = [bytearray(64 << 20) for _ in range(64)]
    except MemoryError:
        send({"event": "facts", "facts": {"held": False}})
    else:
        send({"event": "facts", "facts": {"held": bool(held)}})
    send({"event": "done"})


def torn(send: Send) -> None:
    """Dies in the middle of a line."""
    send._socket.sendall(b'{"event": "res')
    os._exit(0)


def import_something(send: Send) -> None:
    known = "colorsys" in sys.modules
    import colorsys  # noqa: F401

    send({"event": "facts", "facts": {"known": known}})
    send({"event": "done", "imported": ["colorsys", "no_such_module_anywhere"]})
