"""Checks that behave in every way, for the tests of who runs them; no GPU is asked."""

from __future__ import annotations

import os
import signal
import time

from dpbench.job import Job, Talk
from tests.benchmarks.gpu_check.check import Check, Say, answer
from tests.benchmarks.gpu_check.child import asked


def right(say: Say) -> None:
    say(answer("one", "1", "1", True, figure=1))


def wrong(say: Say) -> None:
    say(answer("one", "1", "2", False))


def crashing(say: Say) -> None:
    say(answer("one", "1", "1", True))
    os.kill(os.getpid(), signal.SIGSEGV)


def raising(say: Say) -> None:
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


def hanging(say: Say) -> None:
    say(answer("one", "1", "1", True))
    time.sleep(600)


RIGHT = Check("right", ("one",), 60.0, right)
WRONG = Check("wrong", ("one",), 60.0, wrong)
CRASHING = Check("crashing", ("one", "two"), 60.0, crashing)
RAISING = Check("raising", ("one",), 60.0, raising)
HANGING = Check("hanging", ("one", "two"), 6.0, hanging)
CHECKS = (RIGHT, CRASHING, RAISING, HANGING, WRONG)


def work(job: Job, send: Talk) -> None:
    asked(CHECKS, job, send)
