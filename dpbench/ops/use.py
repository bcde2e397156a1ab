"""One use of a parameter by a function, and what is known of the per-sample gradient there."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dpbench.facts import Facts
from dpbench.numerics import squared_norms, weighted_sum


class Use:
    """One use of one parameter: from the output gradient ``ds`` to the per-sample gradients.

    A subclass holds what its function's gradient needs (usually the activation ``a``) and says how
    to instantiate; a function of the form ``s = a W`` also has a ghost norm and a weighted sum that
    never form the per-sample gradients.
    """

    ghostable: ClassVar[bool] = False
    """Whether the norm and the clipped sum can be had without the per-sample gradients."""

    parameter: Tensor
    """What the function was given: the parameter, or a tensor that is derived from it."""

    def facts(self, ds: Tensor) -> Facts:
        """The sizes that its cost follows from."""
        return Facts.vector(batch=ds.shape[0], size=self.parameter.numel(), rule=type(self).__name__.lower())

    def joined(self, ds: Tensor, examples: Tensor) -> tuple[Use, Tensor]:
        """This use and its ``ds`` with each row of ``examples`` (U, n) as one example; wherever it is ghostable.

        A gradient is a sum over an example's positions, so that the positions of n examples are those of one.
        """
        raise NotImplementedError

    def instantiate(self, ds: Tensor) -> Tensor:
        """Per-sample gradients (module 4), shape (B, *parameter.shape)."""
        raise NotImplementedError

    def squared_ghost_norm(self, ds: Tensor) -> Tensor:
        """Squared per-sample norms (module 3 where there is one), shape (B,)."""
        return squared_norms(self.instantiate(ds))

    def weighted_sum(self, ds: Tensor, c: Tensor) -> Tensor:
        """``sum_i c_i g_i`` (module 2b of the weighted output gradient), shape of the parameter."""
        return weighted_sum(self.instantiate(ds), c)
