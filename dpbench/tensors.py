"""What a model holds, and whether something was left on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn
from torch.utils import _pytree as pytree

from dpbench.batch import Batch

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def bytes_of(model: nn.Module, batch: Batch, others: Iterable[Tensor] = ()) -> int:
    """Bytes of the parameters, buffers, batch and ``others``, shared storages once."""
    tensors = [*model.parameters(), *model.buffers(), *others]
    tensors += [leaf for leaf in pytree.tree_leaves(batch) if isinstance(leaf, Tensor)]
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    return sum(storages.values())


def marks(model: nn.Module) -> Any:
    """A value that changes if hooks, attributes or replaced parts are put on the model."""
    modules = [
        (name, type(m).__name__, m.training, tuple(sorted(vars(m))), tuple(len(getattr(m, hooks)) for hooks in _HOOKS))
        for name, m in model.named_modules()
    ]
    parameters = [
        (name, id(p), p.requires_grad, len(p._backward_hooks or ()), len(vars(p)))
        for name, p in model.named_parameters()
    ]
    return modules, parameters
