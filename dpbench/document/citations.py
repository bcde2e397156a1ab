"""The papers of the implementations that occur, to be cited with their figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cited:
    """A paper, as a text and a bibliography name it."""

    key: str
    authors: tuple[str, ...]
    """Initials before the name."""
    title: str
    year: int
    arxiv: str
    venue: str = ""
    """Where it was published beside arXiv."""

    @property
    def text(self) -> str:
        """Authors, title, venue and year."""
        return f"{', '.join(self.authors)}. {self.title}. {f'{self.venue} {self.year}'.lstrip()}."

    def __str__(self) -> str:
        """As in a list of references."""
        return f"{self.text} arXiv:{self.arxiv}."


ABADI = Cited(
    "abadi2016",
    ("M. Abadi", "A. Chu", "I. Goodfellow", "H. B. McMahan", "I. Mironov", "K. Talwar", "L. Zhang"),
    "Deep Learning with Differential Privacy",
    2016,
    "1607.00133",
    "CCS",
)
LEE_KIFER = Cited(
    "lee2021",
    ("J. Lee", "D. Kifer"),
    "Scaling up Differentially Private Deep Learning with Fast Per-Example Gradient Clipping",
    2021,
    "2009.03106",
    "PoPETs",
)
YOUSEFPOUR = Cited(
    "yousefpour2021",
    (
        "A. Yousefpour",
        "I. Shilov",
        "A. Sablayrolles",
        "D. Testuggine",
        "K. Prasad",
        "M. Malek",
        "J. Nguyen",
        "S. Ghosh",
        "A. Bharadwaj",
        "J. Zhao",
        "G. Cormode",
        "I. Mironov",
    ),
    "Opacus: User-Friendly Differential Privacy Library in PyTorch",
    2021,
    "2109.12298",
)
LI = Cited(
    "li2022",
    ("X. Li", "F. Tramèr", "P. Liang", "T. Hashimoto"),
    "Large Language Models Can Be Strong Differentially Private Learners",
    2022,
    "2110.05679",
    "ICLR",
)
BU_2022 = Cited(
    "bu2022",
    ("Z. Bu", "J. Mao", "S. Xu"),
    "Scalable and Efficient Training of Large Convolutional Neural Networks with Differential Privacy",
    2022,
    "2205.10683",
    "NeurIPS",
)
BU_2023 = Cited(
    "bu2023",
    ("Z. Bu", "Y.-X. Wang", "S. Zha", "G. Karypis"),
    "Differentially Private Optimization on Large Model at Small Cost",
    2023,
    "2210.00038",
    "ICML",
)

OF = {
    "opacus": YOUSEFPOUR,
    "lib:opacus": YOUSEFPOUR,
    "fastgradclip": LEE_KIFER,
    "ghostclip": LI,
    "mixghostclip": BU_2022,
    "bk": BU_2023,
    "lib:fastdp": BU_2023,
    "ablation:bk": BU_2023,
}
"""By how the name of an implementation begins."""


def citations(implementations: Iterable[str]) -> list[Cited]:
    """Of DP-SGD where anything clips, and of each of these that occurs, by year."""
    names = [name for name in implementations if name != "nonprivate"]
    found = {paper for start, paper in OF.items() if any(name.startswith(start) for name in names)}
    order = (ABADI, LEE_KIFER, YOUSEFPOUR, LI, BU_2022, BU_2023)
    return [paper for paper in order if paper in found or (names and paper is ABADI)]
