"""Per-sample gradients by ``torch.func``: vmap over the examples of the gradient of one loss.

Modules 1, 2a, 4, 5; B p d of memory.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.utils import _pytree as pytree

from dpbench.batch import Batch, size
from dpbench.clipping import Clip, Clipping
from dpbench.coverage import NormMethod
from dpbench.errors import Refused
from dpbench.faults import of_machine
from dpbench.interface import Losses, Output, Supports, output
from dpbench.losses import check_losses
from dpbench.parameters import trainable
from dpbench.probe import preserved
from dpbench.rewriting import rewritten
from dpbench.units import Units

TITLE = "torch.func vmap(grad)"
MODULES = "1 2a 4 5"
SUPPORTS = Supports(groups=True, units=True)
PRIVATE = True


class OneExample(nn.Module):
    """The loss of one example as a module, so that its parameters can be given from outside."""

    def __init__(self, model: nn.Module, losses: Losses) -> None:
        super().__init__()
        self.model, self.losses = model, losses

    def forward(self, example: Batch) -> Tensor:
        """Add the batch axis that vmap took away."""
        losses = self.losses(self.model, pytree.tree_map_only(Tensor, lambda t: t[None], example))
        check_losses(losses, 1)
        return losses[0]


class Vmapped:
    """All per-sample gradients at once, then their weighted sum."""

    def __init__(self, model: nn.Module, losses: Losses, clip: Clip) -> None:
        self._parameters, self._clip = trainable(model), clip
        self._groups = clip.groups(list(self._parameters))
        self.norm_methods = dict.fromkeys(self._parameters, NormMethod.INSTANTIATED)
        if any(isinstance(module, nn.RNNBase | nn.RNNCellBase) for module in model.modules()):
            # Fused ones write in place into their first state, which vmap refuses.
            losses = rewritten(losses)
        one = OneExample(model, losses)

        def loss(parameters: dict[str, Tensor], example: Batch) -> Tensor:
            value: Tensor = functional_call(one, parameters, (example,))
            return value

        self._model, self._loss, self._proven = model, loss, False
        self._gradients = vmap(grad_and_value(loss), in_dims=(None, 0), randomness="different")

    def __call__(self, batch: Batch, *, unit: Tensor | None = None, mask: Tensor | None = None) -> Output:
        """Instantiate (module 4), then add up (module 5)."""
        B, first = size(batch), next(iter(self._parameters.values()))
        if B == 0:
            return output(self._parameters, {}, Clipping(self._clip, self._groups, first, 0).norms, first.new_zeros(0))
        given = {f"model.{name}": p.detach() for name, p in self._parameters.items()}
        self._refuse_hidden(given, batch)
        try:
            g, losses = self._gradients(given, batch)
        except RuntimeError as error:
            if of_machine(error):
                raise
            if "saved tensor hooks" in str(error):
                raise Refused(
                    "torch.func.vmap takes no gradient through gradient checkpointing. Switch checkpointing (and "
                    "loss_chunk) off, or use opacus, fastgradclip, ghostclip or mixghostclip."
                ) from error
            raise Refused(f"torch.func.vmap cannot run this model: {str(error).splitlines()[0]}") from error
        units = None if unit is None else Units(unit, first.device)
        clipping = Clipping(self._clip, self._groups, first, B, units)
        stored = {}
        for name in self._parameters:
            samples = g.pop(f"model.{name}")  # 4
            if mask is not None:
                samples[~mask] = 0
            stored[name] = samples if units is None else units.sum(samples)
            clipping.add_instantiated(name, stored[name])
        return output(self._parameters, clipping.weighted_sums(stored), clipping.norms, losses)  # 5

    def _refuse_hidden(self, given: dict[str, Tensor], batch: Batch) -> None:
        """Once, raise if a parameter is read past the model's attributes: its gradient would be lost."""
        if self._proven:
            return
        with preserved(self._model):
            loss = self._loss(given, pytree.tree_map_only(Tensor, lambda t: t[0], batch))
        if loss.requires_grad:
            found = torch.autograd.grad(loss, list(self._parameters.values()), allow_unused=True)
            names = [name for name, g in zip(self._parameters, found, strict=True) if g is not None]
            if names:
                raise Refused(
                    f"parameter {', '.join(names)} is read past the model's attributes (from a list, or captured by "
                    "the losses), where torch.func does not see it. Read it as an attribute of its module."
                )
        self._proven = True

    def close(self) -> None:
        """Nothing was left on the model."""


def prepare(model: nn.Module, losses: Losses, clip: Clip) -> Vmapped:
    """A step for ``model``."""
    return Vmapped(model, losses, clip)
