"""Words to people, on stderr: nothing ends because nobody can be told."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TextIO


def say(text: str) -> None:
    """On stderr; where it cannot be written to (a log on a full disk), nowhere."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def told(tell: Callable[..., None], *event: Any) -> bool:
    """Whether stdout took it; where it did not (a closed pipe, a full disk), what is still said there vanishes."""
    try:
        tell(*event)
        sys.stdout.flush()
    except OSError as error:
        say(f"dpbench: stdout: {error.strerror}; the run goes on, into the results file")
        silence(sys.stdout)
        return False
    return True


def silence(stream: TextIO) -> None:
    """Have everything that is still written to ``stream`` vanish.

    What is in its buffer would complain again at the end of the process.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
