"""The picture of the layerwise decision: 2T^2 against pd over the depth of a network (Bu et al. 2022, figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpbench.decision import Decision, first_ghost
from dpbench.reporting.style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GHOST, INSTANTIATE = "#0072B2", "#E69F00"
"""The colours of bk and of opacus in every chart: who takes ghost norms, and who instantiates."""


def draw(decisions: Sequence[Decision], title: str, path: Path) -> None:
    """The chart as a file, the same for the same decisions."""
    figure = chart(decisions, title)
    with style():
        figure.savefig(path, dpi=200, metadata={"Date": None} if path.suffix == ".svg" else None)


def chart(decisions: Sequence[Decision], title: str) -> Figure:
    """The layers from left to right; what lies lower of both is what the rule picks."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    places = range(1, len(decisions) + 1)
    with style():
        figure = Figure(figsize=(max(4.5, 0.16 * len(decisions) + 2.5), 3.0), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for i, d in zip(places, decisions, strict=True):
            axes.plot([i, i], [d.grams, d.gradient], color="#cccccc", linewidth=1, zorder=1)
        axes.plot(places, [d.grams for d in decisions], "h", color=GHOST, label="2T², ghost norm", zorder=2)
        axes.plot(places, [d.gradient for d in decisions], "D", color=INSTANTIATE, label="pd, instantiate", zorder=2)
        if (first := first_ghost(decisions)) is not None:
            label = f"first ghost norm: {first}, {decisions[first - 1].name}"
            axes.axvline(first - 0.5, color="#555555", linewidth=0.8, linestyle=":", label=label)
        axes.set_yscale("log")
        axes.set_xlim(0, len(decisions) + 1)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylim(1, 10 * max(max(d.grams, d.gradient) for d in decisions))
        axes.set_title(title, loc="left", color="#222222")
        axes.set_xlabel("layers, in the order of the forward")
        axes.set_ylabel("elements for one example")
        figure.legend(loc="outside lower left", ncols=2)
    return figure
