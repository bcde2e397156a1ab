"""A user's own model: ``--model path/to/file.py:build``.

The function is called as ``build(workload)`` and returns ``(model, losses, batches)``::

    def build(workload):
        model = torch.nn.Linear(10, workload.classes or 2)

        def losses(model, batch):                      # one loss per example, shape (B,)
            return torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"], reduction="none")

        def batches(size, seed):                       # a dict or tuple of tensors, batch first
            g = torch.Generator().manual_seed(seed)
            return {"x": torch.randn(size, 10, generator=g), "y": torch.randint(2, (size,), generator=g)}

        return model, losses, batches

``batches`` may also be one concrete batch; the first ``size`` rows of it are taken, again and again
from the top where it has too few. ``workload`` has the axes that were asked for: ``seq_len``,
``image_size``, ``layers``, ``classes`` and so on; None where nothing was said.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dpbench.batch import size as batch_size
from dpbench.batch import take
from dpbench.errors import DpbenchError
from dpbench.models.spec import Spec
from dpbench.models.task import Batches, Task
from dpbench.records import Workload


def build(spec: Spec, workload: Workload) -> Task:
    """Call the user's function and check what it returns."""
    text, _, name = spec.name.rpartition(":")
    path = Path(text or spec.name)
    if not text or not name.isidentifier():
        raise DpbenchError(f"model {spec.name!r} names no function; expected path/to/file.py:build")
    if spec.options:
        given = ", ".join(spec.options)
        raise DpbenchError(f"model {spec.name} takes no options; got {given}. Write a function for each choice")
    if not path.is_file():
        raise DpbenchError(f"no file {path}; expected path/to/file.py:build")
    function = getattr(_module(path), name, None)
    if not callable(function):
        raise DpbenchError(f"{path} has no function {name}(workload); it must return (model, losses, batches)")
    try:
        returned = function(workload)
    except DpbenchError:
        raise
    except Exception as error:
        raise DpbenchError(f"{name}(workload) in {path} raised {type(error).__name__}: {error}") from error
    if not isinstance(returned, tuple) or len(returned) != 3:
        raise DpbenchError(
            f"{name}(workload) in {path} returned {type(returned).__name__}; expected (model, losses, batches)"
        )
    model, losses, batches = returned
    if not isinstance(model, nn.Module) or not callable(losses):
        got = f"({type(model).__name__}, {type(losses).__name__}, {type(batches).__name__})"
        raise DpbenchError(
            f"{name}(workload) in {path} returned {got}; expected (nn.Module, function, function or batch)"
        )
    return Task(model, losses, batches if callable(batches) else _rows(batches), "vector", f"{name} in {path}")


def _rows(batch: Any) -> Batches:
    rows = batch_size(batch)
    if not rows:
        raise DpbenchError("the user's batch has no rows; expected at least one example")
    return lambda size, seed: take(batch, torch.arange(size) % rows)


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"dpbench_user_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Under a name of its own: dataclasses look their module up, and no library may be hidden by the file's name.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise DpbenchError(f"{path} could not be imported: {type(error).__name__}: {error}") from error
    return module
