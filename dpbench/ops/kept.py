"""An activation that is kept until the backward, and noticed if it was overwritten meanwhile."""

from __future__ import annotations

from torch import Tensor

from dpbench.errors import Refused


class Kept:
    """A detached activation and its version; ``get`` raises if an in-place operation changed it."""

    __slots__ = ("_tensor", "_version", "_what")

    def __init__(self, tensor: Tensor, what: str) -> None:
        # Detached, as a graph held here would hold the tape that holds this: a cycle through C++.
        self._tensor = tensor.detach()
        self._version = self._tensor._version
        self._what = what

    def get(self) -> Tensor:
        """The activation as the function saw it."""
        if self._tensor._version != self._version:
            raise Refused(
                f"the input of {self._what}, shape {tuple(self._tensor.shape)}, was overwritten in place "
                "between its use and the backward, so its per-sample gradients cannot be formed. "
                "Use the out-of-place operation (x = x + y, relu(x)) there."
            )
        return self._tensor
