"""Options of a network that a function builds: the function's keywords, and of the kind of their defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any

from dpbench.errors import DpbenchError
from dpbench.models.spec import Spec


def defaults(build: Callable[..., Any]) -> dict[str, Any]:
    """The keywords of a function that have defaults."""
    parameters = inspect.signature(build).parameters
    return {name: p.default for name, p in parameters.items() if p.default is not inspect.Parameter.empty}


def checked(spec: Spec, known: dict[str, Any], from_zero: Collection[str] = ()) -> dict[str, Any]:
    """The options of ``spec``, each of the kind of its default in ``known``; 1e6 is a whole number, too.

    A default of None stands for a whole number or none; those ``from_zero`` may be 0, others are 1 or more.

    Raises:
        DpbenchError: for an unknown option, with near matches, or a value of another kind.
    """
    options = spec.take(known)
    for name, value in options.items():
        if value is None and known[name] is None:
            continue
        kind, lowest = type(known[name]), 0 if name in from_zero else 1
        if kind is bool or kind is str:
            fits, expected = type(value) is kind, "true or false" if kind is bool else "a word"
        else:
            if type(value) is float and value.is_integer():
                value = options[name] = int(value)
            fits, expected = type(value) is int and value >= lowest, f"a whole number, {lowest} or more"
        if not fits:
            raise DpbenchError(f"{spec.family}:{spec.name} is given {name}={value}; expected {expected}")
    return options
