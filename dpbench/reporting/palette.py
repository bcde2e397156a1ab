"""One look for each implementation, the same in every chart: colour, marker and line.

The colours are those of Okabe and Ito (Color Universal Design, 2008) and, where eight do not
suffice, of Tol (Colour Schemes, SRON, 2021). Colour is never alone: marker and line differ as well,
so that charts can be read in print and by people who see fewer colours. An improved or mixed form of
an algorithm has the colour of its family and a dashed line.
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
}

ON_DARK = {
    "#7f7f7f": "#8c8c8c",
    "#882255": "#98557b",
    "#009e73": "#2dc575",
    "#e69f00": "#f59000",
    "#cc79a7": "#efabbd",
    "#d55e00": "#e8501f",
    "#0072b2": "#0b7db8",
    "#56b4e9": "#5cd8ff",
    "#332288": "#9e9ff1",
    "#117733": "#3fae62",
    "#999933": "#b5b54a",
    "#44aa99": "#44aa99",
    "#aa4499": "#d066bf",
    "#661100": "#c8583f",
}
"""What stands for a colour where the paper is dark: of the same hue, and apart from each other for every reader."""
DARK_PAPER, DARK_INK = "#15171c", "#eceef0"

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


def on_dark(colour: str) -> str:
    """The colour that stands for this one on :data:`DARK_PAPER`: a grey as far from it as this one is from white."""
    colour = colour.lower()
    if colour in ON_DARK or not colour[1:3] == colour[3:5] == colour[5:7]:
        return ON_DARK.get(colour, colour)
    light = int(colour[1:3], 16) / 255
    pairs = ((int(DARK_PAPER[i : i + 2], 16), int(DARK_INK[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(light * paper + (1 - light) * ink):02x}" for paper, ink in pairs)
