"""Establishes where the examples lie in every activation, and that they do not mix.

The forward runs on two and on three examples: the axis that grows holds the examples, and a call
that reads parameters whose output does not grow belongs to the batch-free frontier. Then the loss of
each example is differentiated alone, and one example is changed: the entries of an activation that
its loss depends on, or that it moves, must be its own, which settles folded axes ((B T, d) or
(T B, d)?). Last, each example is computed alone, as the loop would: loss and gradient must be those
that it has in the batch, and the backward must be linear in the losses (dpbench/separable.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import combinations

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from dpbench.batch import Batch, perturbed, size, take
from dpbench.dropout import certain
from dpbench.heard import FEW, MORE
from dpbench.interface import Losses
from dpbench.listener import Listener, Shaped, Shapes
from dpbench.losses import check_losses
from dpbench.plan import Plan
from dpbench.rewriting import Rewritten, rewritten
from dpbench.separable import (
    gradient,
    refuse_moving,
    refuse_non_finite,
    refuse_non_finite_gradients,
    refuse_nonlinear,
    refuse_unlike_alone,
)


def probe(
    model: nn.Module, losses: Losses, batch: Batch, parameters: Mapping[str, Tensor], examples: Sequence[int]
) -> Plan:
    """The plan of a forward on ``batch``, by four of its ``examples``.

    Model, buffers and random state are left as they were.

    Raises:
        Refused: if the computation mixes examples, or depends on the batch size in another way.
    """
    more = _taken(batch, *examples[:MORE])
    weights = list(parameters.values())
    plain, mode = losses, Rewritten()
    losses = rewritten(losses, mode)
    with preserved(model), torch.enable_grad():
        pairs = [_taken(batch, *pair) for pair in combinations(examples[:MORE], FEW)]
        # Once for what a model computes at its first call and keeps.
        first = _listened(model, losses, pairs[0])
        # Without values there are no branches on them.
        calls = first if is_fake(model) else _listened(model, losses, more)
        few = next((found for pair in pairs if _alike(found := _listened(model, losses, pair), calls)), None)
        listener = Listener(few or _listened(model, losses, pairs[0]), parameters)
        with preserved(model):
            before = random_state(model)
            with listener:
                out = losses(model, more)
            random = random_state(model) != before
        check_losses(out, MORE)
        if isinstance(out, FakeTensor):
            return listener.plan(rewritten=mode.happened)
        refuse_non_finite(out.detach())
        for j in range(MORE):
            listener.example = j
            gradient(out[j], weights)
        moved = None
        for j, other in _others(batch, examples):
            if few is not None and _alike(_listened(model, losses, other), calls):
                again = Listener(few, parameters)
                with preserved(model), again:
                    moved = losses(model, other).detach(), j
                listener.compare(again, j)
                break
        plan = listener.plan(rewritten=mode.happened)
        tolerance = listener.epsilon**0.5
        if moved is not None:
            refuse_moving(out.detach(), *moved, tolerance)
        with certain() if random else nullcontext():
            alone = _refuse_inseparable(model, losses, plain, more, weights, tolerance)
        plan.tolerance, plan.alone = tolerance, {} if random else dict(zip(examples, alone, strict=False))
    return plan


def _listened(model: nn.Module, losses: Losses, batch: Batch) -> list[Shaped]:
    """The calls of a forward and their shapes."""
    shapes = Shapes()
    with preserved(model), shapes:
        try:
            losses(model, batch)
        except Exception as error:
            n = size(batch)
            error.add_note(f"(raised on {n} examples of the batch; a model has to run on any number of them)")
            raise
    return shapes.calls


def _alike(some: list[Shaped], others: list[Shaped]) -> bool:
    """Whether two forwards took the same branches: a model may skip a mask that masks nothing."""
    return [call[0] for call in some] == [call[0] for call in others]


def _others(batch: Batch, examples: Sequence[int]) -> Iterator[tuple[int, Batch]]:
    """The three examples with one changed, and which."""
    *three, spare = examples
    for j in (1, 2, 0):
        for new in (spare, *three):
            if new != three[j]:
                yield j, _taken(batch, *three[:j], new, *three[j + 1 :])
    yield 1, perturbed(_taken(batch, *three), 1)


def _refuse_inseparable(
    model: nn.Module, losses: Losses, plain: Losses, batch: Batch, weights: list[Tensor], tolerance: float
) -> list[float]:
    """The losses that the examples have alone, nothing rewritten.

    Raises unless those are theirs in the batch, and so the gradients.
    """
    with preserved(model):
        before = random_state(model)
        out = losses(model, batch)
        random = random_state(model) != before
    together = [gradient(out[j], weights) for j in range(MORE)]
    refuse_non_finite_gradients(together)
    refuse_nonlinear(out, together, weights, tolerance)
    own: list[float] = []
    if random:
        return own
    for j in range(MORE):
        with preserved(model):
            alone = plain(model, _taken(batch, j))
        check_losses(alone, 1)
        refuse_unlike_alone(alone, out, together, j, weights, tolerance)
        own.append(alone[0].item())
        if j == 0:
            _refuse_twins(model, losses, batch, alone, weights, tolerance)
    return own


def _refuse_twins(
    model: nn.Module, losses: Losses, batch: Batch, alone: Tensor, weights: list[Tensor], tolerance: float
) -> None:
    """Raise unless the first example has, beside a copy of itself, what it has alone.

    Three examples of three classes do not show a loss that is weighted by how common its class is.
    """
    with preserved(model):
        out = losses(model, _taken(batch, 0, 0, 1))
    twin = gradient(out[0], weights)
    refuse_unlike_alone(alone, out, (twin,), 0, weights, tolerance)


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
    fork = fork and not is_fake(model)
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


def is_fake(model: nn.Module) -> bool:
    """Whether the model is of tensors without values, so that no random state can be read or put back."""
    return any(isinstance(p, FakeTensor) for p in model.parameters())


def random_state(model: nn.Module) -> list[bytes]:
    """Where the generators that a forward may draw from stand; nothing is drawn where tensors are fake."""
    if is_fake(model):
        return []
    states = [torch.get_rng_state().numpy().tobytes()]
    if any(p.is_cuda for p in model.parameters()):
        states += [state.numpy().tobytes() for state in torch.cuda.get_rng_state_all()]
    return states
