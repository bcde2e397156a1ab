"""What an implementation of the DP-SGD gradient is, how it is found, and how it is prepared for a model."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from dpbench.batch import Batch
from dpbench.errors import DpbenchError, Refused, unknown

Losses = Callable[[nn.Module, Batch], Tensor]
"""``losses(model, batch)`` gives one loss per example, shape (B,)."""

GROUP = "dpbench.implementations"
"""The entry-point group that implementations are found through, ours and everybody's."""


@dataclass(slots=True)
class Output:
    """What one step gives.

    ``grads``: the clipped sum ``sum_i C_i g_i`` of every trainable parameter, by the name that
    ``named_parameters()`` gives it; ``p.grad`` is the same tensor. ``norms``: (B,) gradient norms
    before clipping, (B, K) for K clipping groups, None where nothing is clipped (nonprivate).
    ``losses``: (B,), detached.
    """

    grads: dict[str, Tensor]
    norms: Tensor | None
    losses: Tensor


def output(
    parameters: Mapping[str, nn.Parameter], sums: Mapping[str, Tensor | None], norms: Tensor | None, losses: Tensor
) -> Output:
    """A step's output, put into every ``p.grad`` as well; zero where nothing depends on the parameter."""
    grads = {}
    for name, parameter in parameters.items():
        total = sums.get(name)
        grads[name] = parameter.grad = torch.zeros_like(parameter) if total is None else total.to(parameter.dtype)
    return Output(grads, norms, losses)


class Step(Protocol):
    """One prepared implementation: call it once per physical batch."""

    def __call__(self, batch: Batch, *, unit: Tensor | None = None, mask: Tensor | None = None) -> Output:
        """Compute the clipped sum.

        ``unit``: (B,) numbers from 0; examples of one unit (a user) are summed before clipping, and
        the norms are the units'. ``mask``: (B,) truth values; rows that only pad a Poisson batch are
        False and contribute nothing.
        """
        ...

    def close(self) -> None:
        """Leave no hook and no flag behind on the model."""
        ...


@dataclass(frozen=True, slots=True)
class Supports:
    """What an implementation can do beyond flat clipping; anything else is refused by name."""

    groups: bool = False
    """One factor per clipping group and example, rather than one per example."""
    units: bool = False
    """Per-user clipping, which needs the sum of several examples' gradients before the norm."""


class Implementation(Protocol):
    """A module or object with these attributes is an implementation."""

    TITLE: str
    SUPPORTS: Supports
    MODULES: str
    """Its cost in the paper's modules, for example ``1 2a 3 2b``."""

    def prepare(self, model: nn.Module, losses: Losses, clip: Any) -> Step:
        """A step for this model; called once."""
        ...


def available() -> dict[str, str]:
    """Names and titles of the implementations that are installed."""
    return {name: load(name).TITLE for name in sorted(_points())}


@cache
def _points() -> dict[str, Any]:
    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def load(name: str) -> Implementation:
    """An implementation by its entry point's name, or from ``path/to/file.py``.

    Raises:
        DpbenchError: if there is none of that name, or what is there is no implementation.
    """
    if name.endswith(".py"):
        found: Any = _from_file(Path(name))
    elif name in _points():
        found = _points()[name].load()
    else:
        raise unknown("implementation", name, _points(), "Or give the path of a .py file.")
    for attribute, kind in (("TITLE", str), ("SUPPORTS", Supports), ("MODULES", str)):
        if not isinstance(getattr(found, attribute, None), kind):
            raise DpbenchError(
                f"implementation {name} has {attribute} = {getattr(found, attribute, None)!r}; expected a "
                f"{kind.__name__}. See 'Your own implementation' in the README for a complete one."
            )
    if not callable(getattr(found, "prepare", None)):
        raise DpbenchError(f"implementation {name} has no prepare(model, losses, clip); see the README")
    implementation: Implementation = found
    return implementation


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise DpbenchError(f"no file {path}; expected the path of a Python file with TITLE, SUPPORTS and prepare")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise DpbenchError(f"{path} could not be imported: {type(error).__name__}: {error}") from error
    return module


def source_hash(name: str) -> str:
    """Twelve hexadecimal digits that change whenever the implementation's source does."""
    found: Any = load(name)
    path = inspect.getsourcefile(found if isinstance(found, ModuleType) else type(found))
    text = Path(path).read_bytes() if path else repr(found).encode()
    return hashlib.sha256(text).hexdigest()[:12]


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that are asked to be trained, by name; tied ones once."""
    found = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not found:
        raise DpbenchError("the model has no trainable parameter; set requires_grad_(True) on what is to be trained")
    for name, p in found.items():
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


def prepare(name: str, model: nn.Module, losses: Losses, clip: Any = None) -> Step:
    """A step of implementation ``name`` (or of a file) for ``model``; the same for every batch size.

    Raises:
        DpbenchError: for an unknown name or a model without trainable parameters.
        Refused: if the implementation does not support the clipping style, or the model mixes examples.
    """
    from dpbench.clipping import Clip

    clip = clip or Clip()
    implementation = load(name)
    if clip.style != "flat" and not implementation.SUPPORTS.groups:
        raise Refused(
            f"{name} has one clipping factor per example, so it cannot clip in style {clip.style!r}; "
            "use style 'flat', or an implementation that books or stores gradients (bk, bk_mixopt, opacus)."
        )
    trainable(model)
    refuse_batch_norm(model)
    return _Checked(name, implementation, implementation.prepare(model, losses, clip))


def refuse_batch_norm(model: nn.Module) -> None:
    """Raise if a batch norm in training mode mixes the examples of a batch."""
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training:
            raise Refused(
                f"{name} is a {type(module).__name__} in training mode: it mixes the examples of a batch, so no "
                "example has a gradient of its own. Replace it by GroupNorm (--norm group), or put it into eval mode."
            )


class _Checked:
    """A step that refuses what its implementation does not support."""

    def __init__(self, name: str, implementation: Implementation, step: Step) -> None:
        self._name, self._supports, self._step = name, implementation.SUPPORTS, step

    def __call__(self, batch: Batch, *, unit: Tensor | None = None, mask: Tensor | None = None) -> Output:
        if unit is not None and not self._supports.units:
            raise Refused(
                f"{self._name} never forms per-sample gradients, so it cannot sum those of one unit before "
                "clipping; use opacus, opacus_improved, fastgradclip or fastgradclip_improved with units."
            )
        if mask is not None and mask.dtype != torch.bool:
            raise DpbenchError(f"mask has dtype {mask.dtype}; expected truth values, mask.bool()")
        return self._step(batch, unit=unit, mask=mask)

    def close(self) -> None:
        self._step.close()
