"""Which works the methods cite, and whose algorithm each implementation is."""

from __future__ import annotations

from collections.abc import Iterable

from dpbench.document.works import ABADI, BU_2022, BU_2023, LEE, LI, SUBRAMANI, WORKS, YOUSEFPOUR, Work

OF: dict[str, tuple[Work, ...]] = {
    "vmap": (SUBRAMANI,),
    "opacus": (YOUSEFPOUR,),
    "fastgradclip": (LEE,),
    "ghostclip": (LI,),
    "mixghostclip": (BU_2022,),
    "bk": (BU_2023,),
    "bk_mix": (BU_2022, BU_2023),
    "ablation:bk": (BU_2023,),
    "lib:opacus": (YOUSEFPOUR,),
    "lib:opacus/fgc": (LEE, YOUSEFPOUR),
    "lib:opacus/ghost": (LI, YOUSEFPOUR),
    "lib:fastdp": (BU_2023,),
    "lib:fastdp/bk-mix": (BU_2022, BU_2023),
}
"""By how the name of an implementation begins; the longest counts."""


def credit(implementations: Iterable[str]) -> str:
    """A sentence on whose algorithms these are, in their order; none where nothing clips."""
    clip = [name for name in dict.fromkeys(implementations) if name != "nonprivate"]
    if not clip:
        return ""
    owned: dict[tuple[Work, ...], list[str]] = {}
    for name in clip:
        starts = [start for start in OF if name.startswith(start)]
        if starts:
            owned.setdefault(OF[max(starts, key=len)], []).append(name)
    said = [f"{', '.join(names)} ({'; '.join(work.short for work in works)})" for works, names in owned.items()]
    after = f", by the algorithms of {'; '.join(said)}" if said else ""
    return f"Gradients are clipped example by example, as in DP-SGD ({ABADI.short}){after}."


def cited(paragraphs: Iterable[str]) -> list[Work]:
    """The works that these name, by year."""
    text = "\n".join(paragraphs)
    return [work for work in WORKS if work.short in text]
