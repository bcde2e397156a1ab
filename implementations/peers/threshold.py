"""The norms of libraries that compute them inside their clipping and let go of them."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from dpbench.errors import DpbenchError


class Threshold(float):
    """A clipping norm R that remembers the tensor that it was last divided by: ``||g_i|| + s``.

    So a library clips by its own code, and nothing is computed twice.
    """

    divisor: Tensor | None = None

    def __truediv__(self, other: Any) -> Any:
        """``R / other``."""
        if isinstance(other, Tensor):
            self.divisor = other
        return float(self) / other

    def norms(self, stability: float) -> Tensor:
        """``||g_i||`` of the step that was, (B,); forgotten with this call.

        Raises:
            DpbenchError: nothing was divided.
        """
        divisor, self.divisor = self.divisor, None
        if divisor is None:
            raise DpbenchError(
                "the library did not divide its clipping norm by norms, so that it clips otherwise than the version "
                "that this was written for; install that, or mend implementations/peers"
            )
        return divisor - stability
