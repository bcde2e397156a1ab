"""The axis ``checkpointing``: activations of a model's blocks are computed again in the backward."""

from __future__ import annotations

import warnings
from typing import Any

from torch import nn

from dpbench.checkpoints import contexts
from dpbench.errors import Refused
from dpbench.models.spec import Spec


def enable(model: nn.Module, spec: Spec) -> None:
    """Switch checkpointing on; raises Refused for a model that has no switch for it."""
    if spec.family == "transformers":
        _transformers(model, spec)
    elif spec.family == "timm":
        _timm(model, spec)
    else:
        what = "a model of a file" if spec.family == "file" else f"{spec.family}:{spec.name}"
        raise Refused(
            f"{what} has no axis checkpointing, which models of Transformers and timm have; leave it out. In a file of "
            "your own the forward can call torch.utils.checkpoint.checkpoint(..., use_reentrant=False)."
        )


def _transformers(model: nn.Module, spec: Spec) -> None:
    # Adapters of peft are inside of the model as it was.
    whole: Any = model
    inner = whole.get_base_model() if hasattr(whole, "get_base_model") else whole
    if not inner.supports_gradient_checkpointing:
        raise _lacking(spec, f"{type(inner).__name__} says that it does not support gradient checkpointing")
    with warnings.catch_warnings():
        # The new name came in the course of version 5.
        warnings.filterwarnings("ignore", message=".*is deprecated", category=FutureWarning)
        inner.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": False, "context_fn": contexts}
        )
        # Reentrant checkpoints alone need inputs with gradients, of which a frozen embedding would pay for one.
        if hasattr(inner, "_require_grads_hook"):
            inner.disable_input_require_grads()


def _timm(model: nn.Module, spec: Spec) -> None:
    from timm.layers import config

    whole: Any = model
    if hasattr(whole, "get_base_model"):
        whole = whole.get_base_model()
    if getattr(config, "use_reentrant_ckpt", bool)():
        raise Refused(
            "timm is set to reentrant checkpoints (TIMM_REENTRANT_CKPT), which hide the parameters inside them; "
            "expected others. Unset it."
        )
    try:
        whole.set_grad_checkpointing(True)
    except (AttributeError, AssertionError) as error:
        raise _lacking(spec, str(error) or type(error).__name__) from error
    if not any(getattr(module, "grad_checkpointing", False) for module in whole.modules()):
        raise _lacking(spec, "set_grad_checkpointing changes nothing in it")


def _lacking(spec: Spec, why: str) -> Refused:
    return Refused(f"{spec.family}:{spec.name} has no axis checkpointing: {why}. Leave it out, or take another model.")
