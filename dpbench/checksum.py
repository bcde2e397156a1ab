"""A line of JSON that shows whether it is still as it was written: its CRC-32 is its last key."""

from __future__ import annotations

import zlib

from dpbench.errors import DpbenchError

_KEY = b',"crc":"'
_LENGTH = 24
"""Bytes at the end of a line in which the key lies, however the line is spaced."""


def sealed(text: str) -> str:
    """``text``, a JSON object on one line, with the CRC-32 of its bytes as its last key."""
    return f'{text[:-1]},"crc":"{_crc(text.encode())}"}}'


def unsealed(line: bytes) -> bytes:
    """What :func:`sealed` was given, white space after it left off; older lines have no such key, and are as they are.

    Raises:
        DpbenchError: it is not what was written.
    """
    line = line.rstrip()
    if b'"crc"' not in line[-_LENGTH:]:
        return line
    before, _, after = line.rpartition(_KEY)
    text = before + b"}"
    if after != f'{_crc(text)}"}}'.encode():
        raise DpbenchError(
            "it is not as it was written: its checksum is another. If it was changed on purpose, take out its last "
            "key, crc"
        )
    return text


def _crc(text: bytes) -> str:
    return f"{zlib.crc32(text):08x}"
