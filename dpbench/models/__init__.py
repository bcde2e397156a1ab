"""Models and batches to measure on: Transformers, timm, torchvision, synthetic ones, single layers, the user's own."""

from __future__ import annotations

from importlib.util import find_spec

import torch

from dpbench.models import normalization, recomputing, trainable
from dpbench.models.spec import parse
from dpbench.models.task import Task, describe
from dpbench.records import Workload

__all__ = ["Task", "available", "build", "describe"]


def build(workload: Workload) -> Task:
    """The task of a workload: weights random and seeded, in float32 on the CPU, in training mode.

    A user's own model stays in the modes it comes in.

    Raises:
        DpbenchError: for an unknown name or option, with near matches.
        MissingExtra: if the model's library is not installed.
        Refused: for batch norm, unless group norm is asked for, and for an axis that the model lacks.
    """
    spec = parse(workload.model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(workload.seed)
        if spec.family == "transformers":
            from dpbench.models import hf

            task = hf.build(spec, workload)
        elif spec.family in ("timm", "torchvision"):
            from dpbench.models import images

            task = (images.build_timm if spec.family == "timm" else images.build_torchvision)(spec, workload)
        elif spec.family == "synthetic":
            from dpbench.models import synthetic

            task = synthetic.build(spec, workload)
        elif spec.family == "layer":
            from dpbench.models import layers

            task = layers.build(spec, workload)
        elif spec.family == "case":
            from dpbench.models import cases

            task = cases.build(spec, workload)
        else:
            from dpbench.models import userfile

            spec.refuse(workload, "loss_chunk")
            task = userfile.build(spec, workload)
        normalization.normalize(task.model, workload.norm)
        task.model = trainable.select(task.model, workload.trainable)
        if workload.checkpointing:
            recomputing.enable(task.model, spec)
    return task


def available() -> dict[str, str]:
    """Names that can be built, and what they are."""
    from dpbench.cases import CASES
    from dpbench.models import hf, layers, synthetic

    found = {f"transformers:{name}": facts["from"] for name, facts in hf.configurations().items()}
    found |= {f"synthetic:{name}": (kind.__doc__ or "").splitlines()[0] for name, kind in synthetic.KINDS.items()}
    found |= {f"layer:{name}": what for name, what in layers.described().items()}
    found["case:NAME"] = f"any of the {len(CASES)} cases of the conformance kit: dpbench list cases"
    for family, what in (("timm", "any classifier of timm"), ("torchvision", "any classifier of torchvision")):
        missing = "" if find_spec(family) else " (not installed: pip install 'dpsgd-bench[models]')"
        found[f"{family}:NAME"] = what + missing
    found["path/to/config.json"] = "any configuration of Transformers"
    found["path/to/file.py:build"] = "your own: build(workload) -> (model, losses, batches)"
    return found
