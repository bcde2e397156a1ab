"""The loop over the examples as an implementation, with one mistake put into it."""

from __future__ import annotations

from pathlib import Path

TEXT = """
import time
import os
import torch
from dpbench.clipping import Clip
from dpbench.errors import Refused
from dpbench.interface import Supports, output
from dpbench.parameters import trainable
from dpbench.reference import per_example, together

TITLE = "A mutant"
MODULES = "1 2a 2b"
SUPPORTS = Supports(groups=True, units=True)
PRIVATE = {private}


class Step:
    def __init__(self, model, losses, clip):
        self.model, self.losses, self.clip = model, losses, clip
        self.parameters = trainable(model)
        self.steps = 0

    def __call__(self, batch, *, unit=None, mask=None):
        model, losses, clip = self.model, self.losses, self.clip
        self.steps += 1
        {before}
        out = per_example(model, losses, batch, clip, unit=unit, mask=mask)
        {after}
        return {returned}

    def close(self):
        pass


def prepare(model, losses, clip):
    {prepare}
    return Step(model, losses, clip)
"""


def mutant(
    directory: Path,
    *,
    before: str = "pass",
    after: str = "pass",
    prepare: str = "pass",
    private: bool = True,
    returned: str = "output(self.parameters, out.grads, out.norms, out.losses)",
) -> str:
    """A file's path, which is the implementation's name."""
    path = directory / f"mutant{len(list(directory.iterdir()))}.py"
    path.write_text(TEXT.format(before=before, after=after, prepare=prepare, private=private, returned=returned))
    return str(path)
