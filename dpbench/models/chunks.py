"""The axis ``loss_chunk``: a language model's logits and loss for some tokens of each example at a time.

The head is called by itself, on pieces of what the model without it gives. That this is what the model
computes is proven on one of its kind without memory: a part of it takes the batch and gives what the
head reads, and what the head gives is the logits.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dpbench import losses
from dpbench.batch import Batch
from dpbench.errors import Refused
from dpbench.interface import Losses
from dpbench.models.spec import Spec

CHANGING = ("final_logit_softcapping", "logit_scale", "logits_scaling", "lm_head_multiplier", "output_multiplier_scale")
"""Fields of configurations that change logits after the head, to be named in a refusal."""


def prediction(size: int, body: str) -> Losses:
    """The losses of the next token at every position, ``size`` positions at a time; ``body``: from :func:`prove`."""

    def predict(model: nn.Module, batch: Batch) -> Tensor:
        # Adapters of peft are inside of the model as it was.
        whole: Any = model
        inner = whole.get_base_model() if hasattr(whole, "get_base_model") else whole
        hidden = inner.get_submodule(body)(**_inputs(batch))[0]
        return losses.language_model_in_chunks(hidden, inner.get_output_embeddings(), batch["labels"], size)

    return predict


class Seen(NamedTuple):
    """A tensor and its version when it was given or made."""

    tensor: Tensor
    version: int


def prove(model: Any, spec: Spec, batch: Batch) -> str:
    """The name of the part that makes of the batch what the head reads; ``model`` and batch are on the meta device.

    Raises:
        Refused: if there is none, or the logits are not what the head gives.
    """
    inputs, head = _inputs(batch), model.get_output_embeddings()
    bodies: list[tuple[str, Seen]] = []
    read: list[Seen] = []
    made: list[Seen] = []

    def called(name: str, module: nn.Module, args: Any, kwargs: Any, out: Any) -> None:
        if module is head:
            read.append(Seen(args[0], args[0]._version))
            made.append(Seen(out, out._version))
        elif not isinstance(out, Tensor) and _given(module, args, kwargs, inputs):
            bodies.append((name, Seen(out[0], out[0]._version)))

    handles = [
        module.register_forward_hook(partial(called, name), with_kwargs=True)
        for name, module in model.named_modules()
        if name
    ]
    try:
        with torch.no_grad():
            logits = model(**inputs).logits
    finally:
        for handle in handles:
            handle.remove()
    if len(made) != 1:
        raise _refused(model, spec, f"its head is called {len(made)} times")
    body = next((name for name, hidden in reversed(bodies) if _same(hidden, read[0])), None)
    if body is None:
        raise _refused(model, spec, "no part of it takes the batch as it is and gives what its head reads")
    if not _same(made[0], Seen(logits, logits._version)):
        raise _refused(model, spec, "its logits are scaled, capped or changed in another way after the head")
    return body


def _given(module: nn.Module, args: Any, kwargs: Any, inputs: dict[str, Tensor]) -> bool:
    """Whether a call was given the batch, under its names, and no tensor more."""
    arguments = dict(inspect.signature(module.forward).bind(*args, **kwargs).arguments)
    arguments |= arguments.pop("kwargs", {})
    tensors = {name: value for name, value in arguments.items() if isinstance(value, Tensor)}
    return tensors.keys() == inputs.keys() and all(tensors[name] is value for name, value in inputs.items())


def _inputs(batch: Any) -> dict[str, Tensor]:
    return {name: value for name, value in batch.items() if name != "labels"}


def _same(before: Seen, after: Seen) -> bool:
    """Whether both are the same entries of one storage, which nothing has written to in between."""
    a, b = before.tensor, after.tensor
    return (
        a.untyped_storage()._cdata == b.untyped_storage()._cdata
        and (a.shape, a.stride(), a.storage_offset(), a.dtype) == (b.shape, b.stride(), b.storage_offset(), b.dtype)
        and before.version == after.version
    )


def _refused(model: Any, spec: Spec, why: str) -> Refused:
    known = [f"{n}={v}" for n in CHANGING if (v := getattr(model.config, n, None)) not in (None, 1.0)]
    got = f" (got {', '.join(known)})" if known else ""
    return Refused(
        f"{spec.family}:{spec.name} cannot take loss_chunk: {why}{got}; expected logits that are the head's output, "
        "so that they can be computed in pieces. Leave loss_chunk out, or take a configuration without it."
    )
