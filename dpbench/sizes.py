"""Sizes of memories, as people write them."""

from __future__ import annotations

import re

from dpbench.errors import DpbenchError

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
EXPECTED = "a size such as 40GB (1e9 bytes) or 40GiB (2^30 bytes)"


def bytes_of(text: str) -> int:
    """Bytes: ``40GB``, ``40GiB``, ``500MB``; raises DpbenchError for anything else."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]|[KMGT]i)?B?\s*", text)
    size = int(float(found[1]) * {**UNITS, **BINARY}[found[2] or ""]) if found else 0
    if size <= 0:
        raise DpbenchError(f"memory is {text!r}; expected {EXPECTED}")
    return size
