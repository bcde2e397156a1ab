"""A model as it was before a library put something on it."""

from __future__ import annotations

from typing import Any

from torch import nn

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Untouched:
    """The attributes and hooks that a model and its parameters had; as a context, restored where something raises."""

    def __init__(self, model: nn.Module) -> None:
        self._attributes = [(it, set(vars(it))) for it in (*model.modules(), *model.parameters())]
        self._hooks = [(getattr(m, kind), set(getattr(m, kind))) for m in model.modules() for kind in HOOKS]
        # Once a module had a hook of one kind it takes none of the other, even when that is removed.
        self._kinds = [(m, m._is_full_backward_hook) for m in model.modules()]

    def __enter__(self) -> Untouched:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            self.restore()

    def restore(self) -> None:
        """Take off all attributes and hooks that were not there."""
        for it, had in self._attributes:
            for name in set(vars(it)) - had:
                del vars(it)[name]
        for hooks, keys in self._hooks:
            for key in set(hooks) - keys:
                del hooks[key]
        for module, kind in self._kinds:
            module._is_full_backward_hook = kind
