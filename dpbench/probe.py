"""Establishes where the examples lie in every activation, and that they do not mix.

The forward runs on two and on three examples: the axis that grows holds the examples, and a call
that reads parameters whose output does not grow belongs to the batch-free frontier. Then the loss of
each example is differentiated alone, and one example is changed: the entries of an activation that
its loss depends on, or that it moves, must be its own, which settles folded axes ((B T, d) or
(T B, d)?). Last, each example is computed alone, as the loop would: loss and gradient must be those
that it has in the batch, and the backward must be linear in the losses (dpbench/separable.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from dpbench.batch import Batch, perturbed, size, take, varied
from dpbench.dropout import certain
from dpbench.heard import FEW, MORE
from dpbench.interface import Losses
from dpbench.listener import Listener, Shapes
from dpbench.losses import check_losses
from dpbench.plan import Plan
from dpbench.separable import gradient, refuse_moving, refuse_non_finite, refuse_nonlinear, refuse_unlike_alone


def probe(model: nn.Module, losses: Losses, batch: Batch, parameters: Mapping[str, Tensor]) -> Plan:
    """The plan of a forward on ``batch``; model, buffers and random state are left as they were.

    Raises:
        Refused: if the computation mixes examples, or depends on the batch size in another way.
    """
    one, two, three, spare = varied(batch, MORE + 1)
    few, more = _taken(batch, one, two), _taken(batch, one, two, three)
    other = _taken(batch, one, spare if spare != two else one, three) if size(batch) > 1 else perturbed(more, 1)
    weights = list(parameters.values())
    with preserved(model), torch.enable_grad():
        with preserved(model):
            # Once for what a model computes at its first call and keeps.
            try:
                losses(model, few)
            except Exception as error:
                error.add_note(f"(raised on {FEW} examples of the batch; a model has to run on any number of them)")
                raise
        with preserved(model), Shapes() as shapes:
            losses(model, few)
        listener = Listener(shapes.calls, parameters)
        with preserved(model):
            before = random_state(model)
            with listener:
                out = losses(model, more)
            random = random_state(model) != before
        check_losses(out, MORE)
        if isinstance(out, FakeTensor):
            return listener.plan()
        refuse_non_finite(out.detach())
        for j in range(MORE):
            listener.example = j
            gradient(out[j], weights)
        moved = Listener(shapes.calls, parameters)
        with preserved(model), moved:
            changed = losses(model, other)
        listener.compare(moved, 1)
        plan = listener.plan()
        tolerance = listener.epsilon**0.5
        refuse_moving(out.detach(), changed.detach(), 1, tolerance)
        with certain() if random else nullcontext():
            _refuse_inseparable(model, losses, more, weights, tolerance)
    return plan


def _refuse_inseparable(
    model: nn.Module, losses: Losses, batch: Batch, weights: list[Tensor], tolerance: float
) -> None:
    """Raise unless every example has the loss and the gradient that it has alone."""
    with preserved(model):
        before = random_state(model)
        out = losses(model, batch)
        random = random_state(model) != before
    together = [gradient(out[j], weights) for j in range(MORE)]
    refuse_nonlinear(out, together, weights, tolerance)
    if random:
        return
    for j in range(MORE):
        with preserved(model):
            alone = losses(model, _taken(batch, j))
        check_losses(alone, 1)
        refuse_unlike_alone(alone, out, together, j, weights, tolerance)


def _taken(batch: Batch, *numbers: int) -> Batch:
    return take(batch, torch.tensor(numbers))


@contextmanager
def preserved(model: nn.Module, *, fork: bool = True) -> Iterator[None]:
    """Put buffers and, if ``fork``, the random state back as they were."""
    buffers = [
        (module, name, buffer, buffer._version, buffer.detach().clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    devices = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})
    try:
        with torch.random.fork_rng(devices=devices, enabled=fork):
            yield
    finally:
        with torch.no_grad():
            for module, name, buffer, version, value in buffers:
                if module._buffers.get(name) is not buffer:
                    module._buffers[name] = buffer
                if buffer._version != version:
                    buffer.copy_(value)


def random_state(model: nn.Module) -> list[bytes]:
    """Where the generators that a forward may draw from stand."""
    states = [torch.get_rng_state().numpy().tobytes()]
    if any(p.is_cuda for p in model.parameters()):
        states += [state.numpy().tobytes() for state in torch.cuda.get_rng_state_all()]
    return states
