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
``image_size``, ``layers``, ``classes`` and so on; None where nothing was said. Options in parentheses
arrive as keywords: ``path/to/file.py:build(width=3)`` calls ``build(workload, width=3)``. The model
stays in the modes (training or not) that it comes in; the losses are tried once, on two examples.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from torch import nn

from dpbench.batch import size as batch_size
from dpbench.errors import DpbenchError
from dpbench.losses import check_losses
from dpbench.models.batches import repeated
from dpbench.models.spec import Spec
from dpbench.models.task import Batches, Task
from dpbench.probe import preserved
from dpbench.records import Workload


def build(spec: Spec, workload: Workload) -> Task:
    """Call the user's function and check what it returns."""
    text, _, name = spec.name.rpartition(":")
    path = Path(text or spec.name)
    if not text or not name.isidentifier():
        raise DpbenchError(f"model {spec.name!r} names no function; expected path/to/file.py:build")
    if not path.is_file():
        raise DpbenchError(f"no file {path}; expected path/to/file.py:build")
    function = getattr(_module(path), name, None)
    if not callable(function):
        raise DpbenchError(f"{path} has no function {name}(workload); it must return (model, losses, batches)")
    try:
        returned = function(workload, **spec.options)
    except DpbenchError:
        raise
    except (Exception, SystemExit) as error:
        raise DpbenchError(f"{name}(workload) in {path} raised {type(error).__name__}: {error}") from error
    if not isinstance(returned, tuple) or len(returned) != 3:
        got = f"{len(returned)} values" if isinstance(returned, tuple) else type(returned).__name__
        raise DpbenchError(f"{name}(workload) in {path} returned {got}; expected (model, losses, batches)")
    model, losses, batches = returned
    if not isinstance(model, nn.Module) or not callable(losses):
        got = f"({type(model).__name__}, {type(losses).__name__}, {type(batches).__name__})"
        expected = "(nn.Module, function, function or batch)"
        raise DpbenchError(f"{name}(workload) in {path} returned {got}; expected {expected}")
    source, T = f"{name} in {path}", workload.seq_len
    task = Task(model, losses, batches if callable(batches) else _rows(batches), "vector", source, T)
    if T is not None or workload.image_size is not None:
        task.kind = "image" if T is None else "text"
    _try(task)
    return task


def _try(task: Task) -> None:
    """Raise unless the losses are one per example and depend on the model."""
    batch = task.batches(2, 0)
    batch_size(batch)
    with preserved(task.model):
        losses = task.losses(task.model, batch)
    check_losses(losses, 2)
    if not losses.requires_grad and any(p.requires_grad for p in task.model.parameters()):
        raise DpbenchError(
            f"the losses of {task.source} do not depend on a trainable parameter; expected losses that can be "
            "differentiated. Compute them from the model's output, without torch.no_grad(), detach() or item()."
        )


def _rows(batch: Any) -> Batches:
    if not batch_size(batch):
        raise DpbenchError("the user's batch has no rows; expected at least one example")
    return repeated(batch)


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"dpbench_user_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up; under a name of its own it hides no library.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise DpbenchError(f"{path} could not be imported: {type(error).__name__}: {error}") from error
    return module
