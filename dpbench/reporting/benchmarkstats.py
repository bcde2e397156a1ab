"""What pytest-benchmark says of samples, by its own definitions; they are not ours (see :mod:`dpbench.stats`)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

FENCE = 1.5
"""Of the distance between the quartiles: beyond that from them is an outlier (Tukey, 1977)."""


def described(samples: Sequence[float]) -> dict[str, float | int | str]:
    """The fields of ``stats`` in pytest-benchmark's JSON but ``data`` and ``iterations``; a *round* is one sample.

    Samples of all processes are put together. ``samples``: at least one, seconds.
    Source: pytest-benchmark 5.3, ``pytest_benchmark/stats.py``.
    """
    data = sorted(samples)
    mean, total = statistics.mean(samples), sum(samples)
    stddev = statistics.stdev(samples) if len(data) > 1 else 0
    q1, q3 = quartiles(data)
    low, high = q1 - FENCE * (q3 - q1), q3 + FENCE * (q3 - q1)
    beyond_deviation = sum(not mean - stddev <= x <= mean + stddev for x in data)
    beyond_fence = sum(not low <= x <= high for x in data)
    return {
        "min": data[0],
        "max": data[-1],
        "mean": mean,
        "stddev": stddev,
        "rounds": len(data),
        "median": statistics.median(data),
        "iqr": q3 - q1,
        "q1": q1,
        "q3": q3,
        "iqr_outliers": beyond_fence,
        "stddev_outliers": beyond_deviation,
        "outliers": f"{beyond_deviation};{beyond_fence}",
        "ld15iqr": next(x for x in data if x >= low),
        "hd15iqr": next(x for x in reversed(data) if x <= high),
        "ops": len(data) / total if total else 0,
        "total": total,
    }


def quartiles(data: Sequence[float]) -> tuple[float, float]:
    """The first and third quartile of sorted data: of the halves the medians where their sizes are equal.

    For 4n + 1 and 4n + 3 values a weighted mean of two neighbours, which is the mean of what the methods with and
    without the middle value give.
    """
    count = len(data)
    if count == 1:
        return data[0], data[0]
    if count % 2 == 0:
        return statistics.median(data[: count // 2]), statistics.median(data[count // 2 :])
    n = count // 4
    if count % 4 == 1:
        return 0.25 * data[n - 1] + 0.75 * data[n], 0.75 * data[3 * n] + 0.25 * data[3 * n + 1]
    return 0.75 * data[n] + 0.25 * data[n + 1], 0.25 * data[3 * n + 1] + 0.75 * data[3 * n + 2]
