import pytest

from dpbench.errors import DpbenchError
from dpbench.sizes import bytes_of


@pytest.mark.parametrize(
    ("text", "expected"), [("40GB", 40 * 10**9), ("40GiB", 40 * 2**30), ("1.5 MB", 1_500_000), ("800", 800)]
)
def test_sizes(text, expected):
    assert bytes_of(text) == expected


@pytest.mark.parametrize("text", ["", "forty", "0GB", "-1GB", "40 Gb"])
def test_what_is_no_size_is_said(text):
    with pytest.raises(DpbenchError, match="expected a size such as 40GB"):
        bytes_of(text)
