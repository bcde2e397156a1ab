"""Any image classifier of timm or torchvision, with random weights."""

from __future__ import annotations

import inspect
import re
import sys
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
    if workload.attention not in (None, "eager", "sdpa"):
        raise unknown("attention", workload.attention, ("eager", "sdpa"))
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
    channels = int(options.get("in_chans", config.input_size[0] if config else 3))
    classes = int(getattr(model, "num_classes", 1000))
    if classes < 1:
        raise DpbenchError(f"timm:{spec.name} has no classifier of its own; give classes (--classes 10)")
    drop = ", ".join(f"{k} {v:g}" for k, v in options.items() if "drop" in k and v) or "dropout 0"
    source = f"timm {timm.__version__}, {spec.name}, random weights, {drop}"
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
                import timm

                raise _explained(spec, timm.model_entrypoint(spec.name), options, error) from error
            names = [name for name in names if name not in refused]
        except (ValueError, AssertionError) as error:
            raise DpbenchError(f"timm:{spec.name} cannot be built with {spec.options}: {error}") from error


def _explained(spec: Spec, builder: Any, options: dict[str, Any], error: Exception) -> DpbenchError:
    """What to say when a constructor refuses ``options``: near matches where a keyword is unknown to it."""
    found = re.search(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'", str(error))
    constructor = getattr(sys.modules[builder.__module__], found[1], None) if found else None
    if found is None or constructor is None:
        return DpbenchError(f"{spec.family}:{spec.name} cannot be built with {options}: {error}")
    known = [name for name in inspect.signature(constructor).parameters if name not in ("self", "args", "kwargs")]
    if found[2] == "depth" and "depth" not in spec.options:
        return Refused(f"{spec.family}:{spec.name} has no axis layers; leave it out, or give an option of its own")
    return unknown(f"option of {spec.family}:{spec.name}", found[2], known)


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
    if spec.name.startswith("vit") and "image_size" not in options:
        options["image_size"] = size
    if spec.name in ("inception_v3", "googlenet"):
        options |= {"aux_logits": False, "init_weights": False}
    try:
        model = builder(weights=None, **options)
    except (TypeError, ValueError) as error:
        raise _explained(spec, builder, options, error) from error
    _still(model)
    classes = int(options.get("num_classes", 1000))
    source = f"torchvision {torchvision.__version__}, {spec.name}, random weights, dropout 0"
    return Task(model, classify, classified((3, size, size), classes), "image", source)


def _still(model: nn.Module) -> None:
    """Switch dropout and stochastic depth off."""
    for module in model.modules():
        if type(module).__name__ in ("Dropout", "StochasticDepth"):
            module.p = 0.0  # type: ignore[assignment]
