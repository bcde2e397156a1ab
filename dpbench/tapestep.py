"""The step of every implementation that is built on the tape."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from dpbench.batch import Batch, size
from dpbench.clipping import Clip, Clipping
from dpbench.errors import DpbenchError
from dpbench.interface import Losses, Output, output
from dpbench.layout import StructureChanged
from dpbench.losses import check_losses
from dpbench.parameters import trainable
from dpbench.plan import Plan
from dpbench.probe import probe
from dpbench.tape import Tape

Algorithm = Callable[[Tape, Clipping], Mapping[str, Tensor]]
"""From a recorded forward to the clipped sum of each parameter."""


class TapeStep:
    """Records a forward and hands the tape to an algorithm.

    The plan of a forward is made at the first batch and kept; where a later forward reads parameters
    in another order (a layer skipped, another branch taken) a new plan is made for it.
    """

    def __init__(self, model: nn.Module, losses: Losses, clip: Clip, algorithm: Algorithm, *, attached: bool) -> None:
        self._model, self._losses, self._clip = model, losses, clip
        self._algorithm, self._attached = algorithm, attached
        self._parameters = trainable(model)
        self._groups = clip.groups(list(self._parameters))
        self._plans: list[Plan] = []

    def __call__(self, batch: Batch, *, unit: Tensor | None = None, mask: Tensor | None = None) -> Output:
        """The clipped sum of one physical batch, in the parameters' ``grad`` as well."""
        B, first = size(batch), next(iter(self._parameters.values()))
        if B == 0:
            return output(self._parameters, {}, Clipping(self._clip, self._groups, first, 0).norms, first.new_zeros(0))
        tape = self._record(batch, B, mask)
        try:
            clipping = Clipping(self._clip, self._groups, first, B, unit)
            sums = self._algorithm(tape, clipping)
            assert tape.losses is not None
            return output(self._parameters, sums, clipping.norms, tape.losses.detach())
        finally:
            tape.close()

    def close(self) -> None:
        """Forget the plans; nothing was left on the model."""
        self._plans.clear()

    def _record(self, batch: Batch, B: int, mask: Tensor | None) -> Tape:
        for plan in self._plans:
            tape = self._attempt(plan, batch, B, mask)
            if tape is not None:
                return tape
        plan = probe(self._model, self._losses, batch, self._parameters)
        tape = self._attempt(plan, batch, B, mask)
        if tape is None:
            raise DpbenchError(
                "the model reads its parameters in another order on every call, so no plan of it holds. "
                "Make its forward a function of the batch alone (a random layer drop is not)."
            )
        self._plans.insert(0, plan)
        return tape

    def _attempt(self, plan: Plan, batch: Batch, B: int, mask: Tensor | None) -> Tape | None:
        if any(p._backward_hooks for p in self._parameters.values()):
            trainable(self._model)
        state = torch.get_rng_state()
        tape = Tape(self._parameters, plan, B, attached=self._attached)
        try:
            with torch.enable_grad(), tape:
                losses = self._losses(self._model, batch)
            check_losses(losses, B)
            tape.finish(losses if mask is None else torch.where(mask, losses, torch.zeros_like(losses)))
        except StructureChanged:
            tape.close()
            torch.set_rng_state(state)
            return None
        except BaseException:
            tape.close()
            raise
        return tape
