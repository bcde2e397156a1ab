"""What on this machine would disturb a measurement, and what to do about it; one file for each kind of thing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpbench import procfs
from dpbench.system import activity, gpus, processor
from dpbench.system.finding import Finding

__all__ = ["Finding", "findings"]


def findings(environment: Mapping[str, Any], root: Path = procfs.ROOT) -> Iterator[Finding]:
    """Look at everything, in a second; ``environment`` is :func:`dpbench.environment.environment`'s."""
    yield from processor.findings(environment["flags"]["threads"], root)
    yield from activity.findings(root)
    yield from gpus.findings(environment["versions"], root)
