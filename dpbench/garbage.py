"""Reading much without looking for garbage meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Python's collector rests: it would go through all that was read so far, again and again.

    Nothing that is made meanwhile may refer to itself in a circle and be dropped in large numbers.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
