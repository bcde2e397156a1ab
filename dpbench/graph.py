"""The proof that no use of a parameter was missed: a walk over the autograd graph from the losses."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from typing import Any

from torch import Tensor, nn

from dpbench import refusals
from dpbench.errors import Refused

_REMEDY = "Write that part with torch functions in Python, or freeze the parameter (requires_grad_(False))."


def reachable(losses: Tensor, names: Mapping[int, str], boundary: Collection[Any]) -> set[Any]:
    """All nodes that the losses depend on, after proving that parameters are reached in no other way.

    ``names`` maps ids of trainable parameters to their names; ``boundary`` holds the nodes through
    which recorded uses read their parameters, beyond which nothing is looked at. Parameters inside
    ``torch.jit.script``, custom autograd functions and compiled regions are found here.

    Raises:
        Refused: naming the parameter and the function that reads it unseen.
    """
    seen: set[Any] = set()
    stack: list[tuple[Any, Any]] = [(losses.grad_fn, None)]
    while stack:
        node, child = stack.pop()
        if node is None or node in seen or node in boundary:
            continue
        seen.add(node)
        if (variable := getattr(node, "variable", None)) is not None:
            if isinstance(variable, nn.Parameter) and id(variable) not in names:
                raise Refused(
                    f"a parameter of shape {tuple(variable.shape)} that {_readable(child)} uses was not there, "
                    "or was frozen, when the step was prepared. Prepare the step again after changing the model; a "
                    "parameter outside of the model has to be part of it, or frozen."
                )
            if (name := names.get(id(variable))) is not None:
                raise Refused(
                    f"parameter {name} is used by {_readable(child)} where no per-sample gradient can be "
                    f"taken: inside torch.jit.script, torch.compile or a custom "
                    f"autograd function, or written in place into another tensor. {_REMEDY}"
                )
        elif "CheckpointFunction" in node.name():
            raise refusals.reentrant_checkpointing()
        stack.extend((parent, node) for parent, _ in node.next_functions)
    return seen


def leads_to(node: Any, leaves: Container[int], known: dict[Any, bool]) -> bool:
    """Whether a backward from ``node`` arrives at one of ``leaves`` (ids); ``known`` is kept between calls."""
    stack = [node]
    while stack:
        top = stack[-1]
        if top is None or top in known:
            stack.pop()
            continue
        parents = [parent for parent, _ in top.next_functions if parent is not None]
        if waiting := [parent for parent in parents if parent not in known]:
            stack += waiting
            continue
        known[top] = id(getattr(top, "variable", None)) in leaves or any(known[parent] for parent in parents)
    return bool(node is not None and known[node])


def _readable(node: Any) -> str:
    return "the loss itself" if node is None else str(node.name()).rpartition("::")[2]
