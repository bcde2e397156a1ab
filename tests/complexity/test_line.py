"""Any batch from two: exact where costs grow along lines, module by module."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dpbench.complexity.line import Line
from dpbench.complexity.trace import Operation, Trace


def at(batch, fixed, each, resident=10):
    """An optimizer that needs ``fixed`` whatever the batch, and a forward that needs ``each`` for an example."""
    product = Operation("aten.mm", "1", "w", "", "float32", 1, 100 * batch, 8 * batch)
    return Trace((product,), {"update": fixed, "1": each * batch}, {"1: a": each * batch}, resident + batch)


@given(st.integers(0, 10_000), st.integers(1, 50), st.integers(1, 500))
def test_a_batch_along_the_line_is_that_batch(fixed, each, batch):
    line = Line(at(2, fixed, each), at(3, fixed, each), 2, 3)
    assert line.at(batch) == at(batch, fixed, each)
    assert line.need(batch) == 10 + batch + max(fixed, each * batch)


@given(st.integers(0, 10_000), st.integers(1, 50), st.integers(0, 30_000), st.integers(1, 300))
def test_the_largest_fits_and_its_successor_does_not(fixed, each, capacity, most):
    line = Line(at(2, fixed, each), at(3, fixed, each), 2, 3)
    found = line.largest(capacity, most)
    assert 0 <= found <= most
    assert found == 0 or line.need(found) <= capacity
    assert found == most or line.need(found + 1) > capacity


def test_where_nothing_grows_the_most_fits_or_nothing():
    same = Trace((), {"1": 100}, {}, 10)
    assert Line(same, same, 2, 3).largest(110, 64) == 64
    assert Line(same, same, 2, 3).largest(109, 64) == 0
