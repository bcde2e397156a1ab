"""One call of a function that was given a parameter, as a family of rules sees it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from torch import Tensor

from dpbench.errors import Refused
from dpbench.layout import Layout


@dataclass(slots=True)
class Call:
    """A function, its arguments by name, and what the probe found out about them.

    ``known`` holds the ids of trainable parameters and of what is derived from them without the
    batch. ``layouts``: where the examples lie, for each argument that holds examples.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    batch: int
    known: Container[int]
    layouts: Mapping[Any, Layout]

    def is_parameter(self, name: str) -> bool:
        """Whether the argument is to be differentiated for each example."""
        return id(self.arguments[name]) in self.known

    def batch_first(self, name: str) -> Tensor:
        """The argument with the examples on axis 0."""
        if name not in self.layouts:
            raise Refused(
                f"{name_of(self.function)}: the shape of its {name} does not depend on the batch, but the "
                f"shape of its output does. Expand {name} over the batch."
            )
        tensor = self.arguments[name]
        assert isinstance(tensor, Tensor)
        layout = self.layouts[name]
        return layout.fitted(tensor.shape[layout.axis], self.batch).batch_first(tensor, self.batch)


def bind(signature: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name; ``signature`` is written as in Python: ``"input, weight, bias=None"``.

    ``inspect.Signature.bind`` does the same at ten times the cost, on every layer of every step.
    """
    names, defaults = _signature(signature)
    arguments = defaults.copy()
    arguments.update(zip(names, args, strict=False))
    if kwargs:
        arguments.update(kwargs)
    return arguments


@cache
def _signature(text: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    names, defaults = [], {}
    for part in text.split(","):
        name, has_default, default = part.strip().partition("=")
        names.append(name)
        if has_default:
            defaults[name] = ast.literal_eval(default)
    return tuple(names), defaults


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function as a user would write it."""
    name = getattr(function, "__name__", str(function))
    if getattr(function, "__module__", None) == "torch.nn.functional":
        return f"F.{name}"
    if name == "__get__":
        name = getattr(getattr(function, "__self__", None), "__name__", name)
    return f"Tensor.{name}" if hasattr(function, "__objclass__") or name.startswith("__") else f"torch.{name}"
