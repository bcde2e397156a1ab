"""The step of every implementation that is built on the tape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn

from dpbench.batch import Batch, size, take, varied
from dpbench.clipping import Clip, Clipping
from dpbench.errors import DpbenchError, Refused
from dpbench.heard import MORE
from dpbench.interface import Losses, Output, output
from dpbench.layout import StructureChanged
from dpbench.losses import check_losses
from dpbench.parameters import trainable
from dpbench.plan import Plan, tensors
from dpbench.probe import is_fake, preserved, probe
from dpbench.recorder import Recorder
from dpbench.rewriting import rewritten
from dpbench.separable import refuse_unlike_in_batch
from dpbench.tape import Tape
from dpbench.units import Units

Algorithm = Callable[[Tape, Clipping], Mapping[str, Tensor]]
"""From a recorded forward to the clipped sum of each parameter."""


ATTEMPTS = 4
"""To find three examples that take the branches of their batch (a mask is skipped where it masks nothing)."""


class TapeStep:
    """Records a forward and hands the tape to an algorithm.

    A plan is made at the first batch and kept for others of its shapes (but for B); a forward that
    calls other functions (a layer skipped, another branch taken) gets a plan of its own. As examples
    that are alike may hide what mixes them, plans are made anew at the 2nd, 4th, 8th, ... batch.
    """

    def __init__(self, model: nn.Module, losses: Losses, clip: Clip, algorithm: Algorithm, *, attached: bool) -> None:
        self._model, self._losses, self._clip = model, losses, clip
        self._algorithm, self._attached = algorithm, attached
        self._parameters = trainable(model)
        for name, module in model.named_modules():
            if type(module).__name__ == "OptimizedModule" or module._compiled_call_impl is not None:
                raise Refused(
                    f"{name or 'the model'} is compiled by torch.compile, inside of which the tape sees no parameter. "
                    "Prepare the step on the model as it was before (compiled._orig_mod)."
                )
        self._groups = clip.groups(list(self._parameters))
        self._plans: dict[Any, list[Plan]] = {}
        self.norm_methods: Mapping[str, str] = {}
        self._seen = Seen()

    def __call__(self, batch: Batch, *, unit: Tensor | None = None, mask: Tensor | None = None) -> Output:
        """The clipped sum of one physical batch, in the parameters' ``grad`` as well."""
        B, first = size(batch), next(iter(self._parameters.values()))
        if B == 0:
            return output(self._parameters, {}, Clipping(self._clip, self._groups, first, 0).norms, first.new_zeros(0))
        tape = self._record(batch, B, mask)
        try:
            tape.units = None if unit is None else Units(unit, first.device)
            clipping = Clipping(self._clip, self._groups, first, B, tape.units)
            sums = self._algorithm(tape, clipping)
            self.norm_methods = tape.norm_methods
            assert tape.told is not None
            return output(self._parameters, sums, clipping.norms, tape.told)
        finally:
            tape.close()

    def close(self) -> None:
        """Forget the plans; nothing was left on the model."""
        self._plans.clear()

    def _record(self, batch: Batch, B: int, mask: Tensor | None) -> Tape:
        key = (min(B, MORE), tuple(t.shape[1:] for t in tensors(batch)))
        plans = self._plans.setdefault(key, [])
        # Without values there is nothing to see in a later batch that the first did not show.
        if is_fake(self._model) or not self._seen.is_due(batch):
            for plan in plans:
                tape = self._attempt(plan, batch, B, mask)
                if tape is not None:
                    return tape
        for attempt in range(ATTEMPTS):
            plan = probe(self._model, self._losses, batch, self._parameters, varied(batch, MORE + 1, attempt))
            tape = self._attempt(plan, batch, B, mask)
            if tape is not None:
                plans[:] = [plan, *(other for other in plans if other.calls != plan.calls)]
                return tape
        raise DpbenchError(
            "the model calls other functions on this batch than on three examples of it, so what was established "
            "on those does not hold. Make its forward the same for every batch (no random layer drop, no branch "
            "on a property of the whole batch)."
        )

    def _attempt(self, plan: Plan, batch: Batch, B: int, mask: Tensor | None) -> Tape | None:
        state = None if is_fake(self._model) else torch.get_rng_state()
        tape = Tape(self._parameters)
        recorder = Recorder(tape, plan, B, attached=self._attached)
        compute = rewritten(self._losses) if plan.rewritten else self._losses
        try:
            with torch.enable_grad(), recorder:
                losses = compute(self._model, batch)
            check_losses(losses, B)
            recorder.finish(losses if mask is None else torch.where(mask, losses, torch.zeros_like(losses)))
            tape.told = losses.detach()
            if plan.alone:
                self._refuse_mixed(plan, batch, tape.told)
                plan.alone = {}
        except StructureChanged:
            tape.close()
            if state is not None:
                torch.set_rng_state(state)
            return None
        except BaseException:
            tape.close()
            raise
        return tape

    def _refuse_mixed(self, plan: Plan, batch: Batch, losses: Tensor) -> None:
        """Of the first batch of a plan, what three of its examples do not show."""
        refuse_unlike_in_batch(losses, plan.alone, "alone", plan.tolerance)
        halves = [torch.arange(start, len(losses), 2) for start in (0, 1)]
        if len(losses) > MORE:
            # With gradients, as a loss may contain one; its graph is let go of at once.
            with preserved(self._model), torch.enable_grad():
                found = [self._losses(self._model, take(batch, half)).tolist() for half in halves]
            apart = dict(zip(torch.cat(halves).tolist(), [loss for half in found for loss in half], strict=True))
            refuse_unlike_in_batch(losses, apart, "in one half", plan.tolerance)


class Seen:
    """Counts the batches that came by, the same one again and again once."""

    def __init__(self) -> None:
        self._count = 0
        self._last: list[tuple[ref[Tensor], int]] = []

    def is_due(self, batch: Batch) -> bool:
        """Whether this one is new, and its number a power of two."""
        now = tensors(batch)
        if len(now) == len(self._last) and all(
            was() is t and version == t._version for (was, version), t in zip(self._last, now, strict=True)
        ):
            return False
        self._last = [(ref(t), t._version) for t in now]
        self._count += 1
        return self._count & (self._count - 1) == 0
