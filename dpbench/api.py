"""Running a sweep from Python."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbench.frame import load
from dpbench.runner import Event
from dpbench.sweep import Started, asked, cells_of, sweep

if TYPE_CHECKING:
    from pandas import DataFrame


def run(
    suite: str | Path | None = None,
    *,
    select: str | None = None,
    rounds: int | None = None,
    budget_s: float | None = None,
    timeout_s: float | None = None,
    memory: str | None = None,
    measure: Sequence[str] | None = None,
    results: Path | str = "results",
    recheck: bool = False,
    on_event: Callable[[Started | Event], None] = lambda event: None,
    **axes: Any,
) -> DataFrame:
    """Measure and return a row for each cell; the columns are those of :data:`dpbench.frame.COLUMNS`.

    ``axes`` are ``model``, ``implementation`` and the other fields of a workload, one value or a list
    each. With a ``suite``, a name or a path, they replace its own. ``on_event`` is told of everything
    that ``dpbench run`` shows. The rows are written to a new file in ``results`` as well.

        dpbench.run(model="synthetic:mlp", batch=[16, 64], implementation=["bk", "opacus"])

    Raises:
        DpbenchError: for whatever can be known to be wrong before anything is measured.
    """
    settings = {
        "rounds": rounds,
        "budget_s": budget_s,
        "timeout_s": timeout_s,
        "memory": memory,
        "measure": measure,
    }
    what = asked(suite, axes, settings)
    path: Path | None = None
    for event in sweep(
        what,
        cells_of(what, select),
        command=f"dpbench.run from {Path(sys.argv[0]).name or 'python'}",
        directory=results,
        recheck=recheck,
    ):
        if isinstance(event, Started):
            path = event.path
        on_event(event)
    assert path is not None
    return load(path)
