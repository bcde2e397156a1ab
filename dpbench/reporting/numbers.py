"""Numbers and outcomes as people read them."""

from __future__ import annotations

from dpbench.records import Outcome

WORDS = {
    Outcome.OK: "ok",
    Outcome.WRONG: "wrong",
    Outcome.REFUSED: "refused",
    Outcome.OUT_OF_MEMORY: "OOM",
    Outcome.TIMED_OUT: "timed out",
    Outcome.FAILED: "failed",
}


def significant(value: float, digits: int = 3) -> str:
    """``value`` to so many significant digits, without an exponent where one can: 0.0123, 1.20, 12300."""
    if value == 0 or value != value or abs(value) == float("inf"):
        return str(value) if value else "0"
    size = f"{value:.{digits - 1}e}"
    exponent = int(size.partition("e")[2])
    if not -4 <= exponent < 9:
        return size
    return f"{float(size):.{max(digits - 1 - exponent, 0)}f}"


def count(value: float) -> str:
    """A number of things: ``124 M``."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{significant(value / size)} {unit}"
    return f"{value:g}"


def size(value: float) -> str:
    """A number of bytes, 1 GB = 1e9 bytes: ``1.20 GB``."""
    for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= scale:
            return f"{significant(value / scale)} {unit}"
    return f"{value:g} B"


def percent(share: float) -> str:
    """A share to two digits, never rounded to all of it: ``12 %``, ``0.013 %``, ``over 99 %``."""
    text = significant(100 * share, 2)
    return "over 99 %" if share < 1 and float(text) >= 100 else f"{100 if share == 1 else text} %"


def duration(seconds: float) -> str:
    """A time: ``12.3 ms``, ``4.56 s``, ``1.20 h``."""
    for scale, unit in ((3600.0, "h"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= scale:
            return f"{significant(seconds / scale)} {unit}"
    return f"{significant(seconds * 1e6)} us"


def ratio(value: float, low: float | None = None, high: float | None = None) -> str:
    """A ratio, with its interval if there is one: ``0.97 (0.96-0.98)``."""
    text = f"{value:.2f}" if 0.1 <= value < 1000 else significant(value, 3 if value >= 1000 else 2)
    return text if low is None or high is None else f"{text} ({ratio(low)}-{ratio(high)})"
