"""One look for each implementation, the same in every chart: colour, marker and line.

The colours are those of Okabe and Ito (Color Universal Design, 2008) and, where eight do not
suffice, of Tol (Colour Schemes, SRON, 2021). Colour is never alone: marker and line differ as well,
so that charts can be read in print and by people who see fewer colours. An improved or mixed form of
an algorithm has the colour of its family and a dashed line, one with a part taken away a dotted line.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """How one implementation is drawn, in matplotlib's terms."""

    colour: str
    marker: str
    line: str = "-"


KNOWN = {
    "nonprivate": Look("#7f7f7f", "o"),
    "tf_privacy": Look("#882255", "v"),
    "vmap": Look("#009E73", "s"),
    "opacus": Look("#E69F00", "D"),
    "opacus_improved": Look("#E69F00", "d", "--"),
    "fastgradclip": Look("#CC79A7", "^"),
    "fastgradclip_improved": Look("#CC79A7", "<", "--"),
    "ghostclip": Look("#D55E00", "P"),
    "mixghostclip": Look("#D55E00", "X", "--"),
    "bk": Look("#0072B2", "h"),
    "bk_mixghostclip": Look("#56B4E9", "p", "--"),
    "bk_mixopt": Look("#332288", "*"),
    "ablation:bk-without-bookkeeping": Look("#0072B2", ">", ":"),
    "ablation:bk-without-ghost-differentiation": Look("#56B4E9", "8", ":"),
}

_COLOURS = ("#117733", "#999933", "#44AA99", "#AA4499", "#661100")
_MARKERS = ("o", "s", "D", "^", "v", "P", "X")


def look(implementation: str) -> Look:
    """The look of an implementation; of one that is not ours, always the same for the same name."""
    if implementation in KNOWN:
        return KNOWN[implementation]
    number = int.from_bytes(hashlib.sha256(implementation.encode()).digest()[:4])
    return Look(_COLOURS[number % 5], _MARKERS[number // 5 % 7], ":")


def order(implementations: set[str]) -> list[str]:
    """The order in legends and columns: the baseline, the known ones as they are listed, then by name."""
    known = [name for name in KNOWN if name in implementations]
    return known + sorted(implementations - set(known))
