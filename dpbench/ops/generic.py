"""Any function without a rule of its own: the vector-Jacobian product of one example, vmapped.

Slow but right: what is unusual works from the first day, and a rule can make it fast later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from dpbench.errors import Refused
from dpbench.faults import of_machine
from dpbench.layout import Layout
from dpbench.ops.call import name_of
from dpbench.ops.kept import Kept
from dpbench.ops.spacing import spacing
from dpbench.ops.use import Use


class Function:
    """One call of a function: its per-sample gradients for all its parameters at once."""

    def __init__(
        self,
        function: Callable[..., Any],
        leaves: Sequence[Any],
        spec: pytree.TreeSpec,
        parameters: Sequence[int],
        layouts: dict[int, Layout],
        outs: Sequence[Layout | None],
        batch: int,
    ) -> None:
        """``parameters`` and ``layouts`` are by place among the ``leaves`` of (args, kwargs)."""
        what = name_of(function)
        self._function, self._spec, self._batch = function, spec, batch
        self._parameters, self._layouts = list(parameters), layouts
        self._examples = {i: Kept(layout.batch_first(leaves[i], batch), what) for i, layout in layouts.items()}
        self._constants = [
            None if i in layouts else leaf.detach() if isinstance(leaf, Tensor) else leaf
            for i, leaf in enumerate(leaves)
        ]
        self._originals = [leaves[i] for i in parameters]
        self._outs, self._ds = outs, list[Tensor]()
        self._results: dict[int, Tensor] = {}
        self._held: list[int] = []
        device = self._originals[0].device.type
        self._autocast: tuple[str, torch.dtype, bool] = (
            device,
            torch.get_autocast_dtype(device),
            torch.is_autocast_enabled(device),
        )

    def uses(self) -> list[Use]:
        """One for each parameter, in the order of ``parameters``."""
        return [Generic(self, i, original) for i, original in enumerate(self._originals)]

    def arrived(self, ds: Sequence[Tensor | None]) -> None:
        """Take the gradients of the outputs, as autograd gives them; those that hold no examples are zero."""
        self._held = [i for i, d in enumerate(ds) if d is not None]
        self._ds = []
        for i in self._held:
            d, layout = ds[i], self._outs[i]
            assert d is not None
            if layout is None:
                raise Refused(
                    f"{name_of(self._function)}: the loss depends on an output whose shape does not hold the "
                    "examples, so no example has a gradient of its own there."
                )
            self._ds.append(layout.batch_first(d, self._batch))

    def gradient(self, i: int) -> Tensor:
        """Per-sample gradients of the i-th parameter, all computed when the first is asked for."""
        if i not in self._results:
            self._results = dict(enumerate(self._vmapped()))
        return self._results.pop(i)

    def outputs(self) -> list[Tensor]:
        """What the function gives one example at a time, batch first."""
        outs: list[Tensor] = self._vmap(lambda xs: self._one(xs, self._weights()))(self._inputs())
        return outs

    def compare(self, alone: Tensor, together: Tensor) -> None:
        """Raise unless one example at a time gives what the batch gave."""
        alone = alone.reshape(together.shape)
        if not together.is_floating_point():
            return
        tolerance = spacing(self._function, together) ** 0.5
        if not torch.allclose(alone, together, rtol=tolerance, atol=tolerance, equal_nan=True):
            raise Refused(
                f"{name_of(self._function)} uses a parameter, has no rule, and gives something else for one "
                "example at a time than for the batch: it mixes examples or draws random numbers."
            )

    def _vmapped(self) -> Sequence[Tensor]:
        def one(xs: dict[int, Tensor], ds: list[Tensor]) -> Any:
            def held(*weights: Tensor) -> tuple[Tensor, ...]:
                outs = self._one(xs, weights)
                return tuple(outs[i] for i in self._held)

            pull: Any = torch.func.vjp(held, *self._weights())[1]
            layouts = [layout for i in self._held if (layout := self._outs[i]) is not None]
            return pull(tuple(layout.single(d) for layout, d in zip(layouts, ds, strict=True)))

        return list(self._vmap(one)(self._inputs(), self._ds))

    def _one(self, xs: dict[int, Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
        leaves = list(self._constants)
        for i, x in xs.items():
            leaves[i] = self._layouts[i].single(x)
        for i, weight in zip(self._parameters, weights, strict=True):
            leaves[i] = weight
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return [t for t in pytree.tree_leaves(self._function(*args, **kwargs)) if isinstance(t, Tensor)]

    def _inputs(self) -> dict[int, Tensor]:
        return {i: kept.get() for i, kept in self._examples.items()}

    def _weights(self) -> list[Tensor]:
        return [weight.detach() for weight in self._originals]

    def _vmap(self, one: Callable[..., Any]) -> Callable[..., Any]:
        mapped = torch.func.vmap(one)
        device, dtype, enabled = self._autocast

        def run(*operands: Any) -> Any:
            try:
                with torch.autocast(device, dtype, enabled=enabled):
                    return mapped(*operands)
            except (RuntimeError, ValueError) as error:
                if of_machine(error):
                    raise
                raise Refused(
                    f"{name_of(self._function)} uses a parameter and has no rule, and the generic rule cannot "
                    f"evaluate it one example at a time: {str(error).splitlines()[0]} "
                    "Write it with functions that have rules (linear, convolution, embedding, norms, "
                    "arithmetic), or freeze its parameter."
                ) from error

        return run


class Generic(Use):
    """One parameter of a function without a rule."""

    def __init__(self, function: Function, index: int, parameter: Tensor) -> None:
        self._function, self._index = function, index
        self.parameter = parameter

    def instantiate(self, ds: Tensor) -> Tensor:
        """vmap of the function's vector-Jacobian product over the examples."""
        return self._function.gradient(self._index)
