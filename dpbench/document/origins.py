"""Where the numbers of a reproduction come from, in paragraphs for its methods: read, predicted, measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpbench.document.works import BU_2022, WILLIAMS
from dpbench.reproduction import Reproduced, Reproduction


def paragraphs(reproduction: Reproduction) -> Iterator[str]:
    """One for each column that says something."""
    figures = reproduction.figures
    if printed := [figure for figure in figures if figure.printed]:
        yield _published(reproduction, printed)
    yield from _predicted(figures)
    if measured := [figure for figure in figures if figure.files]:
        yield _measured(reproduction, measured)


def _published(reproduction: Reproduction, figures: Iterable[Reproduced]) -> str:
    cited = "; ".join(paper.citation for paper in reproduction.papers)
    ways: dict[str, list[str]] = {}
    for figure in figures:
        ways.setdefault(figure.read or "not recorded", []).append(figure.id)
    how = "; ".join(f"{way} ({', '.join(which)})" for way, which in ways.items())
    return f"Published numbers are those of {cited}. How they were read: {how}."


def _predicted(figures: Iterable[Reproduced]) -> Iterator[str]:
    kinds = {figure.kind for figure in figures}
    if "cost" in kinds:
        cards = ", ".join(dict.fromkeys(figure.card for figure in figures if figure.kind == "cost"))
        yield (
            "Predicted costs are of the implementations' own code at full size, traced on tensors of shapes without "
            "memory at two batches, with a line through them for every other batch; small batches and FLOPs are traced "
            f"at the batch itself. A time is the roofline of the card ({cards}) from its published peaks "
            f"({WILLIAMS.short}): every operator takes as long as its arithmetic, its traffic or its launch, "
            "whichever is longest. The largest batch is the largest whose tensors fit into the card's memory. Nothing "
            "is fitted to measured or published numbers."
        )
    if "complexity" in kinds:
        yield (
            "In tables of complexity, what is predicted is FLOPs by the formulas of the modules, and what is measured "
            "is FLOPs counted in a trace of the code."
        )
    if "decisions" in kinds:
        yield (
            "Decisions of layers are predicted from T, d and p of every trained matrix by the rule 2T^2 < pd "
            f"({BU_2022.short}); nothing is measured for them."
        )


def _measured(reproduction: Reproduction, figures: Iterable[Reproduced]) -> str:
    which = ", ".join(figure.id for figure in figures)
    if reproduction.device is not None:
        return f"Measured numbers ({which}) were taken on {reproduction.device} of this machine, at full size."
    return (
        f"Measured numbers ({which}) were taken on the CPU of this machine, at the reduced size that stands beside "
        "each: of them ratios alone are set beside published ones, and those are of smaller networks."
    )
