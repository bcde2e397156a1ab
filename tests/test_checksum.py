import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.checksum import sealed, unsealed
from dpbench.errors import DpbenchError

TEXT = '{"a":1.5,"b":"x"}'
objects = st.dictionaries(st.text(max_size=9), st.text(max_size=9) | st.just('","crc":"0"') | st.integers(), min_size=1)


def test_the_checksum_is_the_crc_32_of_the_rest_and_the_last_key():
    value = json.loads(sealed(TEXT))
    assert list(value) == ["a", "b", "crc"]
    assert int(value["crc"], 16) == zlib.crc32(TEXT.encode())


@given(objects)
def test_what_is_sealed_is_unsealed(value):
    text = json.dumps(value, separators=(",", ":"))
    assert unsealed(sealed(text).encode()) == unsealed(sealed(text).encode() + b"\n") == text.encode()


def test_every_bit_that_is_flipped_is_seen():
    """By the checksum, or because it is no JSON any more, or another key that no record has."""
    line = sealed(TEXT).encode()
    for at in range(len(line)):
        for bit in range(8):
            flipped = line[:at] + bytes([line[at] ^ 1 << bit]) + line[at + 1 :]
            try:
                found = json.loads(unsealed(flipped))
            except (DpbenchError, ValueError):
                continue
            assert set(found) - {"a", "b"}, flipped


def test_a_line_without_one_is_taken_as_it_is():
    for text in (TEXT, '{"name":"crc","schema":3,"started":"2030-01-02T03:04:05+00:00"}'):
        assert unsealed(text.encode()) == text.encode()


def test_a_line_that_was_spaced_anew_says_what_to_do():
    with pytest.raises(DpbenchError, match="take out its last key, crc"):
        unsealed(json.dumps(json.loads(sealed(TEXT))).encode())
