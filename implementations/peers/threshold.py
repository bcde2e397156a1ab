"""The norms of libraries that compute them inside their clipping and let go of them."""

from __future__ import annotations

from typing import Any

from torch import Tensor


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

    def norms(self, stability: float) -> Tensor | None:
        """``||g_i||`` of the step that was, (B,); None where nothing was clipped. Forgotten with this call."""
        divisor, self.divisor = self.divisor, None
        return None if divisor is None else divisor.detach() - stability
