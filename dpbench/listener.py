"""Listens to a forward: which calls read parameters, how tensors grow, what each example's loss depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from dpbench import checkpoints, refusals
from dpbench.derived import Derived, derive, direct
from dpbench.errors import Refused
from dpbench.graph import leads_to
from dpbench.heard import FEW, MORE, Grown, Growth, Heard, Shape, growth_of
from dpbench.ops.call import name_of
from dpbench.ops.spacing import spacing
from dpbench.plan import Plan, leaves, operands, tensors
from dpbench.trace import ASKING, WATCHED, Trace

Shaped = tuple[Any, dict[str | int, Shape], list[Shape]]
"""A function that was called, the shapes of its tensors, and those of its results."""


class Shapes(TorchFunctionMode):
    """Notes the shapes of arguments and results of all calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Shaped] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in ASKING:
            return func(*args, **kwargs)
        before = {key: tuple(t.shape) for key, t in leaves(func, args, kwargs).items()}
        result = func(*args, **kwargs)
        if outs := tensors(result):
            self.calls.append((func, before, [tuple(t.shape) for t in outs]))
        return result


class Listener(TorchFunctionMode):
    """Hears which calls read parameters and, in the backward, which entries each example depends on."""

    def __init__(self, smaller: list[Shaped], parameters: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.calls: list[Heard] = []
        self.example = -1
        self.epsilon = 0.0
        self._trained: dict[Any, bool] = {}
        self._smaller = iter(smaller)
        self._known: dict[int, Derived] = direct(parameters)
        self._trace = Trace(MORE, self._known)
        self._differs: str | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in ASKING:
            return func(*args, **kwargs)
        self._trace.calls.append(func)
        if func in WATCHED:
            self._trace.watched(func, args, kwargs)
        if _by_frequency(func, args, kwargs):
            raise Refused(
                f"{name_of(func)} with scale_grad_by_freq divides gradients by how often an id occurs in the batch, "
                "which mixes examples. Build it without."
            )
        read = operands(args, kwargs, self._known)
        if read and not torch.is_grad_enabled() and checkpoints.reentrant():
            raise refusals.reentrant_checkpointing()
        inputs = leaves(func, args, kwargs)
        sizes = {key: tuple(t.shape) for key, t in inputs.items()}
        result = func(*args, **kwargs)
        outs = tensors(result)
        if not outs:
            return result
        for out in outs:
            if out.requires_grad and out.is_floating_point():
                self.epsilon = max(self.epsilon, spacing(func, out))
        smaller: Shaped = next(self._smaller, (None, {}, []))
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
        heard = Heard(func, tuple(d.key for d in read), _names(read), before=self._trace.take())
        self.calls.append(heard)
        number = len(self.calls) - 1
        grown = [growth_of(s, tuple(t.shape), heard) for s, t in zip(smaller[2], outs, strict=True)]
        if not any(grown):
            heard.shapes = tuple(tuple(t.shape) for t in outs)
            for i, out in enumerate(outs):
                if out.requires_grad:
                    self._known[id(out)] = derive((number, i), func, args, read, out)
            return result
        heard.ndims = tuple(t.ndim for t in outs)
        others = [t for t in inputs.values() if id(t) not in self._known]
        heard.first = not any(leads_to(t.grad_fn, self._known, self._trained) for t in others)
        if isinstance(result, Tensor) and result._is_view():
            # An in-place operation on a view would lose its hook.
            result = torch.ops.aten._unsafe_view.default(result, result.shape)
            outs = [result]
        for out, growth in zip(outs, grown, strict=True):
            heard.outs.append(self._listen(out, growth, heard))
        for key, tensor in inputs.items():
            if id(tensor) not in self._known and (g := growth_of(smaller[1].get(key), sizes[key], heard)):
                heard.inputs[key] = self._listen(tensor, g, heard) or Grown(g.axis, g.rows)
        return result

    def __exit__(self, *exception: Any) -> None:
        # The hooks hold the listener, and it would hold the graph that holds them.
        self._trained.clear()
        super().__exit__(*exception)  # type: ignore[no-untyped-call]

    def plan(self, *, rewritten: bool) -> Plan:
        """What the tape may rely on; raises where something could not be established."""
        return Plan([heard.planned() for heard in self.calls], frozenset(self._trace.calls), rewritten=rewritten)

    def compare(self, other: Listener, example: int) -> None:
        """Take what another run, in which one example is different, says of who owns what."""
        for mine, its in zip(self.calls, other.calls, strict=False):
            mine.compare(its, example)

    def _listen(self, tensor: Tensor, growth: Growth | None, heard: Heard) -> Grown | None:
        if growth is None:
            return None
        if growth.rows > 1 and heard.function is F.embedding_bag:
            raise Refused(
                f"F.embedding_bag reads {heard.names} for bags of any length that are packed into one axis, so that "
                "which entries are whose cannot be known. Give it ids (B, T): pad, with padding_idx."
            )
        self._trace.refuse_disorder(heard.function, heard.names, growth.rows)
        real = not isinstance(tensor, FakeTensor)
        grown = Grown(growth.axis, growth.rows, matters=real and tensor.requires_grad)
        if real and growth.rows > 1:
            grown.value = tensor.detach().clone()
        if tensor.requires_grad and not isinstance(tensor, FakeTensor):
            tensor.register_hook(lambda ds: self._arrived(grown, ds))  # type: ignore[no-untyped-call]
        return grown

    def _arrived(self, grown: Grown, ds: Tensor) -> None:
        if self.example >= 0:
            grown.note(ds, self.example)
        elif torch.is_grad_enabled():
            raise refusals.double_backward()


def _names(read: list[Derived]) -> str:
    return ", ".join(dict.fromkeys(root for derived in read for root in derived.roots))


def _by_frequency(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether the gradient of a lookup is divided by how often an id occurs in the whole batch."""
    if func is torch.embedding:
        return bool(kwargs.get("scale_grad_by_freq", len(args) > 3 and args[3]))
    return func in (F.embedding, F.embedding_bag) and bool(kwargs.get("scale_grad_by_freq", len(args) > 5 and args[5]))
