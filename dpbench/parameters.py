"""The parameters that a gradient is asked of, and those of which none can be given."""

from __future__ import annotations

from torch import nn
from torch.nn.parameter import UninitializedParameter

from dpbench.errors import DpbenchError, Refused


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that are asked to be trained, by name; tied ones once.

    Raises:
        DpbenchError: if there is none.
        Refused: for a parameter that is complex, is computed from another, or has a hook.
    """
    found = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not found:
        raise DpbenchError("the model has no trainable parameter; set requires_grad_(True) on what is to be trained")
    for name, p in found.items():
        if isinstance(p, UninitializedParameter):
            raise Refused(
                f"parameter {name} has no shape yet; run the model once on a batch before preparing the step."
            )
        if p._backward_hooks:
            raise Refused(
                f"parameter {name} has a hook on its gradient, which changes a sum of gradients and not each one. "
                "Remove it, and change the clipped sum in p.grad after the step."
            )
        if p.is_complex():
            raise Refused(f"parameter {name} is complex; expected real parameters. Keep real and imaginary part apart.")
        if not p.is_leaf:
            raise Refused(
                f"parameter {name} is computed from another tensor (deepcopy of a torch.jit.script module does "
                "that), so no gradient would arrive at it. Build the model anew instead of copying it."
            )
    return found
