"""How charts look, as ``report/charts.mplstyle`` has it."""

from __future__ import annotations

from contextlib import AbstractContextManager

from dpbench.reportpath import find


def style() -> AbstractContextManager[None]:
    """Draw and write charts inside of this: they look the same whatever the user's own matplotlibrc says."""
    from matplotlib import rc_context

    return rc_context(fname=find("charts.mplstyle"))
