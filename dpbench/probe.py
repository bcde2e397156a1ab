"""Establishes where the examples lie in every activation, and that they do not mix.

The forward runs on two and on three examples: the axis that grows holds the examples, and a call
that reads parameters whose output does not grow belongs to the batch-free frontier. Then the loss of
each example is differentiated alone: the entries of an activation that it depends on must be those
of that example, which settles folded axes ((B T, d) or (T B, d)?) and refuses whatever mixes
examples. Last, one example is changed: no other example's loss may move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode

from dpbench.batch import Batch, perturbed, take
from dpbench.derived import Derived, derive, direct
from dpbench.errors import DpbenchError, Refused
from dpbench.heard import FEW, MORE, Grown, Growth, Heard, Shape, growth_of
from dpbench.ops.call import name_of
from dpbench.plan import Plan, leaves, operands, tensors

Losses = Callable[[nn.Module, Batch], Tensor]


def probe(model: nn.Module, losses: Losses, batch: Batch, parameters: Mapping[str, Tensor]) -> Plan:
    """The plan of a forward on ``batch``; model, buffers and random state are left as they were.

    Raises:
        Refused: if the computation mixes examples, or depends on the batch size in another way.
    """
    size = next(iter(_tensors(batch))).shape[0]
    few, more = (take(batch, torch.arange(n) % size) for n in (FEW, MORE))
    with preserved(model), torch.enable_grad():
        shapes = _Shapes()
        with preserved(model), shapes:
            fewer = losses(model, few)
        listener = _Listener(shapes.calls, parameters)
        with preserved(model), listener:
            out = losses(model, more)
        check_losses(out, MORE)
        real = not isinstance(out, FakeTensor)
        if real:
            _finite(out.detach())
        if real and out.requires_grad:
            for j in range(MORE):
                listener.example = j
                _backward(out[j], list(parameters.values()))
        plan = Plan([heard.planned() for heard in listener.calls])
        if real:
            # With gradients as before: without them fused attention rounds differently in low precision.
            with preserved(model):
                _others_stay(out.detach(), losses(model, perturbed(more, 1)).detach())
    if real:
        _same_alone(fewer.detach(), out.detach())
    return plan


def _backward(loss: Tensor, parameters: list[Tensor]) -> None:
    try:
        torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        first = str(error).splitlines()[0]
        if "inplace operation" in first:
            raise Refused(
                f"an activation was overwritten in place between its use and the backward: {first.split(' Hint')[0]} "
                "Use the out-of-place operation (x = x + y, relu(x)) there; a plain backward fails, too."
            ) from error
        if "use_reentrant" in first:
            raise Refused(
                "reentrant gradient checkpointing hides the parameters inside it. "
                "Use torch.utils.checkpoint.checkpoint(..., use_reentrant=False)."
            ) from error
        raise


def check_losses(losses: Any, batch: int) -> None:
    """Raise unless ``losses`` holds one loss for each example."""
    if not isinstance(losses, Tensor) or losses.shape != (batch,):
        got = f"shape {tuple(losses.shape)}" if isinstance(losses, Tensor) else type(losses).__name__
        raise DpbenchError(
            f"losses(model, batch) returned {got}; expected one loss per example, shape ({batch},). "
            'Use reduction="none", and for text average over each example\'s own tokens: '
            "dpbench.losses.language_model and dpbench.losses.cross_entropy do."
        )


@contextmanager
def preserved(model: nn.Module, *, fork: bool = True) -> Iterator[None]:
    """Put buffers and, if ``fork``, the random state back as they were."""
    buffers = [
        (module, name, buffer, buffer._version, buffer.detach().clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    devices = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})
    try:
        with torch.random.fork_rng(devices=devices, enabled=fork):
            yield
    finally:
        with torch.no_grad():
            for module, name, buffer, version, value in buffers:
                if module._buffers.get(name) is not buffer:
                    module._buffers[name] = buffer
                if buffer._version != version:
                    buffer.copy_(value)


def _tensors(batch: Batch) -> Iterator[Tensor]:
    yield from tensors(batch)


class _Shapes(TorchFunctionMode):
    """Notes the shapes of arguments and results of all calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, dict[str | int, Shape], list[Shape]]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        before = {key: tuple(t.shape) for key, t in leaves(func, args, kwargs).items()}
        result = func(*args, **kwargs)
        if outs := tensors(result):
            self.calls.append((func, before, [tuple(t.shape) for t in outs]))
        return result


class _Listener(TorchFunctionMode):
    """Hears which calls read parameters and, in the backward, which entries each example depends on."""

    def __init__(self, smaller: list[Any], parameters: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.calls: list[Heard] = []
        self.example = -1
        self._smaller = iter(smaller)
        self._known: dict[int, Derived] = direct(parameters)
        self._differs: str | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        read = operands(args, kwargs, self._known)
        inputs = leaves(func, args, kwargs)
        sizes = {key: tuple(t.shape) for key, t in inputs.items()}
        result = func(*args, **kwargs)
        outs = tensors(result)
        if not outs:
            return result
        smaller: tuple[Any, dict[str | int, Shape], list[Shape]] = next(self._smaller, (None, {}, []))
        if self._differs is None and (smaller[0] != func or len(smaller[2]) != len(outs)):
            self._differs = name_of(func)
        if not read or not torch.is_grad_enabled() or not any(t.requires_grad for t in outs):
            return result
        if self._differs is not None:
            raise Refused(
                f"the operations depend on the batch size: on {MORE} examples {self._differs} is called where on "
                f"{FEW} it is not, and {name_of(func)} reads {_names(read)} after that. Loop over examples "
                "outside of the model, or compute them together."
            )
        heard = Heard(func, tuple(d.key for d in read), _names(read))
        self.calls.append(heard)
        number = len(self.calls) - 1
        grown = [growth_of(s, tuple(t.shape), heard) for s, t in zip(smaller[2], outs, strict=True)]
        if not any(grown):
            for i, out in enumerate(outs):
                if out.requires_grad:
                    self._known[id(out)] = derive((number, i), func, args, read, out)
            return result
        heard.ndims = tuple(t.ndim for t in outs)
        heard.first = not any(t.requires_grad for t in inputs.values() if id(t) not in self._known)
        if isinstance(result, Tensor) and result._is_view():
            # An in-place operation on a view would lose its hook.
            result = torch.ops.aten._unsafe_view.default(result, result.shape)
            outs = [result]
        for out, growth in zip(outs, grown, strict=True):
            heard.outs.append(self._listen(out, growth))
        for key, tensor in inputs.items():
            if id(tensor) not in self._known and (g := growth_of(smaller[1].get(key), sizes[key], heard)):
                heard.inputs[key] = self._listen(tensor, g) or Grown(g.axis, g.rows)
        return result

    def _listen(self, tensor: Tensor, growth: Growth | None) -> Grown | None:
        if growth is None:
            return None
        grown = Grown(growth.axis, growth.rows)
        if tensor.requires_grad and not isinstance(tensor, FakeTensor):
            tensor.register_hook(lambda ds: grown.note(ds, self.example))  # type: ignore[no-untyped-call]
        return grown


def _names(read: list[Derived]) -> str:
    return ", ".join(dict.fromkeys(root for derived in read for root in derived.roots))


def _same_alone(few: Tensor, more: Tensor) -> None:
    tolerance = torch.finfo(more.dtype).eps ** 0.5
    if few.shape == (FEW,) and not torch.allclose(few, more[:FEW], rtol=tolerance, atol=tolerance):
        raise Refused(
            f"examples are mixed: the losses of two examples are {few.tolist()} without a third one and "
            f"{more[:FEW].tolist()} with it. Compute every example's loss from that example alone."
        )


def _finite(losses: Tensor) -> None:
    bad = (~torch.isfinite(losses)).nonzero().flatten().tolist()
    if bad:
        raise DpbenchError(
            f"the loss of example {bad[0]} is {losses[bad[0]].item():g}, so nothing can be established from it. "
            "Begin with a batch whose losses are finite: mend the input, or widen the precision."
        )


def _others_stay(before: Tensor, after: Tensor) -> None:
    tolerance = 100 * torch.finfo(before.dtype).eps
    for j in (0, 2):
        if (after[j] - before[j]).abs() > tolerance * (1 + before[j].abs()):
            raise Refused(
                f"examples are mixed: changing example 1 moved the loss of example {j} from {before[j].item():.6g} "
                f"to {after[j].item():.6g}. Compute every example's loss from that example alone."
            )
