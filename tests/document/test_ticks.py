import pytest

from dpbench.document.ticks import short, ticks


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.9, 1.3, [0.9, 1.0, 1.1, 1.2, 1.3]),
        (0.9, 6.0, [1, 1.5, 2, 3, 5]),
        (0.5, 900, [1, 3, 10, 30, 100, 300]),
        (1.0, 1.001, [1.0]),
    ],
)
def test_numbers_that_people_say(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)


def test_never_more_than_fit():
    for low in (1e-9, 0.3, 1, 77):
        for times in (1.0001, 1.3, 2, 5, 30, 1e3, 1e9, 1e15):
            found = ticks(low, low * times)
            assert 0 < len(found) <= 7
            assert all(0.99 * low <= t <= 1.01 * low * times for t in found)


def test_as_many_digits_as_it_has():
    assert [short(v) for v in (0.75, 1.0, 20.0, 1.25)] == ["0.75", "1", "20", "1.25"]
