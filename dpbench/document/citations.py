"""The papers of the implementations that occur, to be cited with their figures."""

from __future__ import annotations

from collections.abc import Iterable

ABADI = (
    "M. Abadi, A. Chu, I. Goodfellow, H. B. McMahan, I. Mironov, K. Talwar, L. Zhang. Deep Learning with Differential "
    "Privacy. CCS 2016. arXiv:1607.00133."
)
LEE_KIFER = (
    "J. Lee, D. Kifer. Scaling up Differentially Private Deep Learning with Fast Per-Example Gradient Clipping. PoPETs "
    "2021. arXiv:2009.03106."
)
YOUSEFPOUR = (
    "A. Yousefpour, I. Shilov, A. Sablayrolles, D. Testuggine, K. Prasad, M. Malek, J. Nguyen, S. Ghosh, A. Bharadwaj, "
    "J. Zhao, G. Cormode, I. Mironov. Opacus: User-Friendly Differential Privacy Library in PyTorch. 2021. "
    "arXiv:2109.12298."
)
LI = (
    "X. Li, F. Tramèr, P. Liang, T. Hashimoto. Large Language Models Can Be Strong Differentially "
    "Private Learners. ICLR 2022. arXiv:2110.05679."
)
BU_2022 = (
    "Z. Bu, J. Mao, S. Xu. Scalable and Efficient Training of Large Convolutional Neural Networks with Differential "
    "Privacy. NeurIPS 2022. arXiv:2205.10683."
)
BU_2023 = (
    "Z. Bu, Y.-X. Wang, S. Zha, G. Karypis. Differentially Private Optimization on Large Model at "
    "Small Cost. ICML 2023. arXiv:2210.00038."
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


def citations(implementations: Iterable[str]) -> list[str]:
    """Of DP-SGD where anything clips, and of each of these that occurs, by year."""
    names = [name for name in implementations if name != "nonprivate"]
    found = {paper for start, paper in OF.items() if any(name.startswith(start) for name in names)}
    order = (ABADI, LEE_KIFER, YOUSEFPOUR, LI, BU_2022, BU_2023)
    return [paper for paper in order if paper in found or (names and paper is ABADI)]
