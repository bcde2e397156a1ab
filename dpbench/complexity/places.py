"""Where in an algorithm and in a model an operator belongs: how a trace tells 2a from 2b, and layers apart.

Forwards, an operator belongs to the part of the model that is running and to the parameter among its
operands. Backwards, to what the operator did whose node of the graph is running: their sequence
numbers agree. A product of a backward that reads the weight gives the output gradient (2a); one that
does not, the parameter's (2b), or under vmap one for each example (4). What the tape does says so itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._functorch import apis

from dpbench.clipping import Clipping
from dpbench.gradient import SampleGradient
from dpbench.step import Training
from dpbench.tape import Tape


class Place(NamedTuple):
    """The module of the algorithm, the parameter, and the part of the model."""

    module: str
    parameter: str
    within: str

    @property
    def label(self) -> str:
        """For people, the same for all blocks of a model: ``1: transformer.h.*.attn``."""
        part = self.within if re.search(r"[^\d.]", self.within) else self.parameter or self.within
        part = re.sub(r"\b\d+\b", "*", part) or "losses"
        return f"{self.module}: {part}"


METHODS: tuple[tuple[type, str, str], ...] = (
    (SampleGradient, "squared_ghost_norm", "3"),
    (SampleGradient, "instantiate", "4"),
    (SampleGradient, "weighted_sum", "2b"),
    (Clipping, "add_instantiated", "4"),
    (Clipping, "weighted_sum", "5"),
    (Training, "update", "update"),
)
"""What is a module of the algorithms by itself. The parameter is the object's name, or the first argument."""


class Node(NamedTuple):
    """What an operator forwards was, for its node backwards."""

    parameter: str = ""
    within: str = ""
    derives: bool = False
    """Whether it was of weights alone: all that comes of it backwards are parameters' gradients."""
    multiplies: bool = False


class Places:
    """Follows one step, between ``watched``."""

    def __init__(self, parameters: Mapping[str, Tensor], modules: Mapping[int, str]) -> None:
        self._sizes = {name: p.numel() for name, p in parameters.items()}
        self._weights = {p.untyped_storage()._cdata: name for name, p in parameters.items()}
        self._modules = modules
        self._running: list[str] = []
        self._methods: list[tuple[str, str]] = []
        self._nodes: dict[int, Node] = {}
        self._again = False
        self._vmapped = 0

    def of(self, given: Sequence[Tensor], made: Sequence[Tensor], flops: int) -> Place:
        """The place of one operator."""
        if self._methods:
            module, parameter = self._methods[-1]
            return Place(module, parameter, parameter.rpartition(".")[0])
        weights = [self._weights.get(t.untyped_storage()._cdata) for t in given]
        # A checkpoint runs its forward again inside the backward, where gradients are off otherwise.
        recomputes = self._running or (torch.is_grad_enabled() and not self._vmapped)
        if torch._C._current_graph_task_id() == -1 or recomputes:
            return self._forwards(weights, made, flops)
        return self._backwards(weights, flops)

    def _forwards(self, weights: Sequence[str | None], made: Sequence[Tensor], flops: int) -> Place:
        # A linear layer reads a weight and a bias; what is multiplied with is the larger one.
        parameter = max((w for w in weights if w is not None), key=lambda name: self._sizes[name], default="")
        within = self._running[-1] if self._running else ""
        derives = bool(weights) and None not in weights
        if derives:
            # Cast, transposed, standardised: it is the weight from there on.
            for tensor in made:
                self._weights.setdefault(tensor.untyped_storage()._cdata, parameter)
        # The node was made just before. What has none comes after another's, which is not to be overwritten.
        number = torch._C._autograd._get_sequence_nr() - 1
        if not self._nodes.get(number, Node()).multiplies and (flops or number not in self._nodes):
            self._nodes[number] = Node(parameter, within, derives, flops > 0)
        return Place("1", parameter, within)

    def _backwards(self, weights: Sequence[str | None], flops: int) -> Place:
        current = torch._C._current_autograd_node()
        node = self._nodes.get(current._sequence_nr(), Node()) if current else Node()
        of_parameter = node.derives or all(w is None for w in weights)
        module = ("4" if self._vmapped else "2b") if flops and node.parameter and of_parameter else "2a"
        return Place(f"{module} again" if self._again else module, node.parameter, node.within)

    def forget(self, storage: int) -> None:
        """A storage is gone; its address may be another's."""
        self._weights.pop(storage, None)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Let parts of the model, and methods that are modules of the algorithms, say when they run."""
        changed: list[tuple[Any, str, Callable[..., Any]]] = [
            (apis, "vmap_impl", self._mapped(apis.vmap_impl)),  # type: ignore[attr-defined]
            (nn.Module, "__call__", self._part(nn.Module.__call__)),
            (Tape, "reweighted", self._second(Tape.reweighted)),
            *((owner, name, self._method(getattr(owner, name), module)) for owner, name, module in METHODS),
        ]
        originals = [(owner, name, getattr(owner, name)) for owner, name, _ in changed]
        try:
            for owner, name, new in changed:
                setattr(owner, name, new)
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)

    def _part(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def running(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            self._running.append(self._modules.get(id(module), ""))
            try:
                return call(module, *args, **kwargs)
            finally:
                self._running.pop()

        return running

    def _mapped(self, vmap: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(vmap)
        def mapped(*args: Any, **kwargs: Any) -> Any:
            self._vmapped += 1
            try:
                return vmap(*args, **kwargs)
            finally:
                self._vmapped -= 1

        return mapped

    def _second(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def reweighted(*args: Any, **kwargs: Any) -> Any:
            self._again = True
            try:
                return method(*args, **kwargs)
            finally:
                self._again = False

        return reweighted

    def _method(self, method: Callable[..., Any], module: str) -> Callable[..., Any]:
        @wraps(method)
        def saying(this: Any, *args: Any, **kwargs: Any) -> Any:
            name = this.name if isinstance(this, SampleGradient) else next(iter(args), "")
            self._methods.append((module, name if isinstance(name, str) else ""))
            try:
                return method(this, *args, **kwargs)
            finally:
                self._methods.pop()

        return saying
