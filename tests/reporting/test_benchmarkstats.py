import random

import pytest
from pytest_benchmark.stats import Stats

from dpbench.reporting.benchmarkstats import described


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 9, 30, 101])
def test_all_is_as_pytest_benchmark_says(count):
    draw = random.Random(count)
    samples = [draw.lognormvariate(-3, 0.7) for _ in range(count)]
    theirs = Stats()
    for sample in samples:
        theirs.update(sample)
    assert described(samples) == theirs.as_dict()


def test_equal_samples_have_no_outliers():
    theirs = Stats()
    for _ in range(6):
        theirs.update(0.1)
    assert described([0.1] * 6) == theirs.as_dict()


def test_outliers_and_quartiles_by_hand():
    found = described([1.0, 2.0, 3.0, 4.0, 100.0])
    # 1.5 IQR from the quartiles 1.75 and 28 ends at 67.375; the deviation is 43.5 around 22.
    assert (found["q1"], found["q3"], found["outliers"], found["hd15iqr"]) == (1.75, 28.0, "1;1", 4.0)
