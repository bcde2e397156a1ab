"""Batch norm mixes examples: it is replaced by group norm when asked, and refused by name otherwise."""

from __future__ import annotations

from torch import nn

from dpbench import refusals
from dpbench.errors import unknown

MOST_GROUPS = 32
"""The number of groups of Wu and He 2018, 1803.08494; fewer where it does not divide the channels."""


def normalize(model: nn.Module, norm: str | None) -> None:
    """Replace every batch norm by group norm if ``norm`` is ``group``.

    Raises:
        Refused: naming the first batch norm in training mode, if it is not.
    """
    if norm not in (None, "group"):
        raise unknown("norm", norm, ["group"])
    for name, module in list(model.named_modules()):
        if not isinstance(module, nn.modules.batchnorm._BatchNorm):
            continue
        if norm is None and not module.training:
            continue
        if norm is None:
            raise refusals.batch_norm(f"{name} (a {type(module).__name__})")
        parent = model.get_submodule(name.rpartition(".")[0])
        replacement = group_norm(module)
        if isinstance(module, nn.SyncBatchNorm) or type(module).__module__.startswith("torch.nn"):
            setattr(parent, name.rpartition(".")[2], replacement)
            continue
        # A subclass that does more (timm's BatchNormAct2d applies an activation after dropping).
        rest = [part for part in (getattr(module, "drop", None), getattr(module, "act", None)) if part is not None]
        setattr(parent, name.rpartition(".")[2], nn.Sequential(replacement, *rest))


def group_norm(module: nn.modules.batchnorm._BatchNorm) -> nn.GroupNorm:
    """Group norm over as many channels, in the most groups up to 32 that divide them."""
    channels = module.num_features
    groups = max(n for n in range(1, MOST_GROUPS + 1) if channels % n == 0)
    return nn.GroupNorm(groups, channels, eps=module.eps, affine=module.affine)
