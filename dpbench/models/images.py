"""Any image classifier of timm or torchvision, with random weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from dpbench.errors import DpbenchError, MissingExtra, Refused, unknown
from dpbench.models.batches import classified
from dpbench.models.spec import Spec
from dpbench.models.synthetic import classify
from dpbench.models.task import Task
from dpbench.records import Workload

Create = Callable[..., nn.Module]


def build_timm(spec: Spec, workload: Workload) -> Task:
    """A model of timm; options are its constructor's keywords."""
    try:
        import timm
    except ImportError as error:
        raise MissingExtra("timm", "models") from error
    if not timm.is_model(spec.name):
        raise unknown("timm model", spec.name, timm.list_models())
    spec.refuse(workload, "seq_len", "loss_chunk")
    config = timm.get_pretrained_cfg(spec.name)
    size = spec.settle("img_size", "image_size", workload) or (config.input_size[-1] if config else 224)
    depth, classes = spec.settle("depth", "layers", workload), spec.settle("num_classes", "classes", workload)
    options = {**spec.options, "num_classes": classes, "depth": depth}
    options = {name: value for name, value in options.items() if value is not None}

    def create(**keywords: Any) -> nn.Module:
        model: nn.Module = timm.create_model(spec.name, pretrained=False, **keywords)
        return model

    model, taken = _created(create, spec, options, {"img_size": size, "drop_rate": 0.0, "drop_path_rate": 0.0})
    _attention(model, spec, workload.attention)
    classes = int(getattr(model, "num_classes", 1000))
    if not classes:
        raise DpbenchError(f"timm:{spec.name} has no classifier of its own; give it one with --classes 1000")
    channels = int(spec.options.get("in_chans", config.input_size[0] if config else 3))
    return _task(spec, model, f"timm {timm.__version__}", (channels, size, size), classes, "img_size" in taken)


def build_torchvision(spec: Spec, workload: Workload) -> Task:
    """A model of torchvision; options are its constructor's keywords."""
    try:
        import torchvision
    except ImportError as error:
        raise MissingExtra("torchvision", "models") from error
    known = torchvision.models.list_models(module=torchvision.models)
    if spec.name not in known:
        raise unknown("torchvision model", spec.name, known)
    spec.refuse(workload, "seq_len", "layers", "attention", "loss_chunk")
    options = dict(spec.options)
    size = spec.settle("image_size", "image_size", workload) or (299 if spec.name == "inception_v3" else 224)
    classes = spec.settle("num_classes", "classes", workload) or 1000
    options["num_classes"] = classes
    if spec.name.startswith("vit_"):
        options["image_size"] = size
    if spec.name.startswith("maxvit"):
        options["input_size"] = (size, size)
    if spec.name in ("inception_v3", "googlenet"):
        options |= {"aux_logits": False, "init_weights": False}
    builder = torchvision.models.get_model_builder(spec.name)

    def create(**keywords: Any) -> nn.Module:
        model: nn.Module = builder(weights=None, **keywords)
        return model

    model, _ = _created(create, spec, options, {})
    any_size = "image_size" in options
    return _task(spec, model, f"torchvision {torchvision.__version__}", (3, size, size), classes, any_size)


def _created(create: Create, spec: Spec, options: dict[str, Any], wished: dict[str, Any]) -> tuple[nn.Module, set[str]]:
    """A model, and which of the wished keywords its constructor takes."""
    wished = {name: value for name, value in wished.items() if name not in options}
    while True:
        try:
            return create(**options, **wished), {*options, *wished}
        except TypeError as error:
            refused = next((name for name in (*wished, *options) if f"'{name}'" in str(error)), None)
            if refused in wished:
                del wished[refused]
            elif refused is not None and refused in spec.options:
                raise unknown(f"option of {spec.family}:{spec.name}", refused, _keywords(create)) from error
            elif refused == "depth":
                raise Refused(
                    f"{spec.family}:{spec.name} has no axis layers; give its own option, for example "
                    f"{spec.family}:{spec.name}(depths=[1,1,1,1])"
                ) from error
            else:
                raise _cannot(spec, error) from error
        except (ValueError, AssertionError, ArithmeticError) as error:
            raise _cannot(spec, error) from error


def _cannot(spec: Spec, error: Exception) -> DpbenchError:
    options = ", ".join(f"{name}={value}" for name, value in spec.options.items()) or "no options"
    return DpbenchError(f"{spec.family}:{spec.name} cannot be built with {options}: {error}")


def _keywords(create: Create) -> list[str]:
    """What the constructor of a model takes."""
    model = create()
    return [name for name in inspect.signature(type(model).__init__).parameters if name not in ("self", "kwargs")]


def _attention(model: nn.Module, spec: Spec, attention: str | None) -> None:
    """Choose between torch's fused kernel and plain products, where the model has both."""
    if attention is None:
        return
    if attention not in ("eager", "sdpa"):
        raise unknown("attention", attention, ("eager", "sdpa"))
    both: list[Any] = [module for module in model.modules() if hasattr(module, "fused_attn")]
    if not both:
        raise Refused(f"{spec.family}:{spec.name} has no axis attention; leave it out")
    for module in both:
        module.fused_attn = attention == "sdpa"


def _task(
    spec: Spec, model: nn.Module, library: str, shape: tuple[int, int, int], classes: int, any_size: bool
) -> Task:
    dropped = [f"{name}={value}" for name, value in spec.options.items() if "drop" in name]
    if not dropped:
        _still(model)
    if not any_size:
        _try(model, spec, shape)
    source = f"{library}, {spec.name}, random weights, {', '.join(dropped) or 'dropout 0'}"
    return Task(model, classify, classified(shape, classes), "image", source)


def _still(model: nn.Module) -> None:
    """Switch dropout and stochastic depth off."""
    for module in model.modules():
        if "drop" in type(module).__name__.lower() or type(module).__name__ == "StochasticDepth":
            for name in ("p", "drop_prob"):
                if hasattr(module, name):
                    setattr(module, name, 0.0)


def _try(model: nn.Module, spec: Spec, shape: tuple[int, int, int]) -> None:
    """Raise if the model, which was not told the size of its images, cannot work on one of an unusual size."""
    parameter = next(model.parameters())
    if shape[-1] % 32 == 0 or parameter.is_meta:
        return
    model.eval()
    try:
        with torch.no_grad():
            model(torch.zeros(1, *shape))
    except RuntimeError as error:
        raise DpbenchError(
            f"{spec.family}:{spec.name} cannot take images of {shape[-1]} x {shape[-1]} pixels: {error} "
            "Give another --image-size; a multiple of 32 is safest."
        ) from error
    finally:
        model.train()
