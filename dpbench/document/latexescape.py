"""Text that LaTeX takes, whatever is in it: with pdfLaTeX in its default encoding and without packages."""

from __future__ import annotations

import re
from unicodedata import normalize

ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0327": "c",
}
"""Combining marks, and the command that puts them over (or below) a letter."""

WORDS = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedblright{}",
    "-": "{-}",
    "'": "{'}",
    "`": r"\`{}",
    **{c: f"{{{c}}}" for c in "?![]*"},
    "\N{SUPERSCRIPT TWO}": "$^{2}$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{MICRO SIGN}": r"$\mu$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{EN DASH}": "--",
    "\N{EM DASH}": "---",
    "\N{LEFT SINGLE QUOTATION MARK}": "`",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": "``",
    "\N{RIGHT DOUBLE QUOTATION MARK}": "''",
    "\N{HORIZONTAL ELLIPSIS}": r"\ldots{}",
    "\N{LATIN SMALL LETTER SHARP S}": r"\ss{}",
    "\N{LATIN SMALL LETTER AE}": r"\ae{}",
    "\N{LATIN CAPITAL LETTER AE}": r"\AE{}",
    "\N{LATIN SMALL LETTER O WITH STROKE}": r"\o{}",
    "\N{LATIN CAPITAL LETTER O WITH STROKE}": r"\O{}",
    "\N{LATIN SMALL LIGATURE OE}": r"\oe{}",
    "\N{LATIN CAPITAL LIGATURE OE}": r"\OE{}",
    "\N{LATIN SMALL LETTER L WITH STROKE}": r"\l{}",
    "\N{LATIN CAPITAL LETTER L WITH STROKE}": r"\L{}",
}
"""Hyphens, quotes and marks stand in braces so that two of them make no ligature, brackets and stars because they
would be an argument of the command before them."""


def escape(text: str) -> str:
    """``text`` on one line; a character that no font of LaTeX's default has is told by its number, ``[U+1F600]``."""
    return "".join(map(_character, normalize("NFC", " ".join(text.split()))))


def breakable(text: str) -> str:
    """``text`` whose names and paths may be broken after a comma, an underscore or a slash."""
    return re.sub(r"(,|/|\\_)(?=\S)", r"\1\\allowbreak{}", escape(text))


def comment(text: str) -> str:
    """``text`` behind a percent sign, on one line and in ASCII."""
    return "% " + " ".join(text.split()).encode("ascii", "backslashreplace").decode()


def _character(c: str) -> str:
    if c in WORDS:
        return WORDS[c]
    if " " <= c < "\x7f":
        return c
    base, *marks = list(normalize("NFD", c))
    if marks and base.isascii() and base.isalpha() and all(mark in ACCENTS for mark in marks):
        # Over an i or a j the dot goes away.
        letter = f"\\{base}" if base in "ij" and not any(mark == "\u0327" for mark in marks) else base
        for mark in marks:
            letter = f"\\{ACCENTS[mark]}{{{letter}}}"
        return letter
    return f"{{[}}U+{ord(c):04X}{{]}}"
