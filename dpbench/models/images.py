"""Any image classifier of timm or torchvision, with random weights."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from dpbench.errors import DpbenchError, MissingExtra, Refused, unknown
from dpbench.models.batches import classified
from dpbench.models.spec import Spec
from dpbench.models.synthetic import classify
from dpbench.models.task import Task
from dpbench.records import Workload


def build_timm(spec: Spec, workload: Workload) -> Task:
    """A model of timm; options are its constructor's keywords."""
    try:
        import timm
        from timm.layers import config as timm_layers
    except ImportError as error:
        raise MissingExtra("timm", "models") from error
    if not timm.is_model(spec.name):
        raise unknown("timm model", spec.name, timm.list_models())
    options: dict[str, Any] = {"drop_rate": 0.0, **spec.options}
    classes = options.pop("num_classes", None) or workload.classes
    if classes is not None:
        options["num_classes"] = classes
    if workload.layers is not None:
        options["depth"] = workload.layers
    config = timm.get_pretrained_cfg(spec.name)
    size = workload.image_size or (config.input_size[-1] if config else 224)
    # Only the fused kernel or the plain products: what "None" means is timm's own choice.
    timm_layers.set_fused_attn(workload.attention != "eager")
    model, taken = _with_size(timm.create_model, spec, options, {"img_size": size, "drop_path_rate": 0.0})
    if "img_size" not in taken and workload.image_size is not None and size % 32:
        raise DpbenchError(f"timm:{spec.name} takes images of multiples of 32 pixels; got image_size {size}")
    channels = getattr(model, "in_chans", 3)
    classes = int(getattr(model, "num_classes", 1000))
    source = f"timm {timm.__version__}, {spec.name}, random weights, dropout 0"
    return Task(model, classify, classified((channels, size, size), classes), "image", source)


def _with_size(create: Any, spec: Spec, options: dict[str, Any], wished: dict[str, Any]) -> tuple[nn.Module, list[str]]:
    """Create a model with as many of the wished keywords as its constructor takes."""
    names = list(wished)
    while True:
        try:
            keywords = {**options, **{name: wished[name] for name in names if name not in options}}
            return create(spec.name, pretrained=False, **keywords), names
        except TypeError as error:
            refused = [name for name in names if f"'{name}'" in str(error)]
            if not refused:
                raise DpbenchError(f"timm:{spec.name} cannot be built with {spec.options}: {error}") from error
            names = [name for name in names if name not in refused]
        except (ValueError, AssertionError) as error:
            raise DpbenchError(f"timm:{spec.name} cannot be built with {spec.options}: {error}") from error


def build_torchvision(spec: Spec, workload: Workload) -> Task:
    """A model of torchvision; options are its constructor's keywords."""
    try:
        import torchvision
    except ImportError as error:
        raise MissingExtra("torchvision", "models") from error
    known = torchvision.models.list_models(module=torchvision.models)
    if spec.name not in known:
        raise unknown("torchvision model", spec.name, known)
    options: dict[str, Any] = dict(spec.options)
    if workload.layers is not None or workload.attention is not None:
        axis = "layers" if workload.layers is not None else "attention"
        raise Refused(f"torchvision:{spec.name} has no axis {axis}; leave it out")
    if workload.classes is not None:
        options.setdefault("num_classes", workload.classes)
    size = workload.image_size or (299 if spec.name == "inception_v3" else 224)
    builder = torchvision.models.get_model_builder(spec.name)
    if "vit" in spec.name and "image_size" not in options:
        options["image_size"] = size
    if spec.name in ("inception_v3", "googlenet"):
        options |= {"aux_logits": False, "init_weights": False}
    try:
        model = builder(weights=None, **options)
    except (TypeError, ValueError) as error:
        keywords = ", ".join(inspect.signature(builder).parameters)
        raise DpbenchError(
            f"torchvision:{spec.name} cannot be built with {options}: {error} (takes {keywords})"
        ) from error
    _still(model)
    classes = int(options.get("num_classes", 1000))
    source = f"torchvision {torchvision.__version__}, {spec.name}, random weights, dropout 0"
    return Task(model, classify, classified((3, size, size), classes), "image", source)


def _still(model: nn.Module) -> None:
    """Switch dropout and stochastic depth off."""
    for module in model.modules():
        if type(module).__name__ in ("Dropout", "StochasticDepth"):
            module.p = 0.0  # type: ignore[assignment]
