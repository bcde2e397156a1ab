"""Text that HTML and XML may hold."""

from __future__ import annotations

import re

ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML has no place for: control characters and halves of surrogate pairs."""


def legal(text: str) -> str:
    """The text with U+FFFD, which stands for what cannot be shown, for each character that XML does not allow."""
    return ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)
