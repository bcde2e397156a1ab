"""Which parameters are asked to be trained."""

from __future__ import annotations

import warnings
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

from dpbench.errors import DpbenchError, MissingExtra, unknown

CHOICES = {
    "all": "every parameter",
    "biases": "biases alone (BiTFiT)",
    "last": "the last layer (with its embedding, where the two are tied)",
    "norms": "norm layers alone",
    "pattern:GLOB": "parameters whose name matches, for example pattern:*.attn.*",
    "lora:r=8,targets=A+B": "low-rank adapters on the named modules, through peft",
}


def select(model: nn.Module, trainable: str) -> nn.Module:
    """Freeze all but what is asked for; with adapters the model that is returned is another."""
    if trainable == "all":
        return model
    if trainable.partition(":")[0] == "lora":
        return _lora(model, trainable)
    names = _names(model, trainable)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in names)
    if not names:
        some = ", ".join(name for name, _ in list(model.named_parameters())[:5])
        raise DpbenchError(f"trainable {trainable!r} selects no parameter; the names are like {some}")
    return model


def _names(model: nn.Module, trainable: str) -> set[str]:
    names = [name for name, _ in model.named_parameters()]
    if trainable == "biases":
        return {name for name in names if name.rpartition(".")[2].endswith("bias")}
    if trainable == "norms":
        norms = {m for m, module in model.named_modules() if "Norm" in type(module).__name__}
        return {name for name in names if name.rpartition(".")[0] in norms}
    if trainable == "last":
        # By modules: a tied head has no name of its own among the parameters.
        layer = [module for module in model.modules() if any(True for _ in module.parameters(recurse=False))][-1]
        own = {id(p) for p in layer.parameters(recurse=False)}
        return {name for name, p in model.named_parameters() if id(p) in own}
    if trainable.startswith("pattern:"):
        return {name for name in names if fnmatchcase(name, trainable.removeprefix("pattern:"))}
    raise unknown("trainable", trainable, CHOICES)


def _lora(model: nn.Module, trainable: str) -> nn.Module:
    try:
        import peft
    except ImportError as error:
        raise MissingExtra("peft", "models") from error
    options = _lora_options(trainable)
    config = peft.LoraConfig(
        r=options["r"],
        lora_alpha=options.get("alpha", options["r"]),
        target_modules=options.get("targets"),
        lora_dropout=0.0,
        # Both factors at random: with one of them zero, the other's gradient would be zero, too.
        init_lora_weights=False,
    )
    try:
        with warnings.catch_warnings():
            # That the weight of Transformers' Conv1D is transposed, which peft sees by itself.
            warnings.filterwarnings("ignore", message="fan_in_fan_out")
            # peft asks for what Transformers calls otherwise by now.
            warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing")
            adapted: nn.Module = peft.get_peft_model(model, config)  # type: ignore[arg-type,unused-ignore]
    except ValueError as error:
        raise DpbenchError(f"lora cannot be put on this model: {error} Give targets=NAME+NAME.") from error
    return adapted


def _lora_options(trainable: str) -> dict[str, Any]:
    """``r`` and ``alpha``, whole numbers, and ``targets``, names, of ``lora:r=8,targets=A+B``."""
    options: dict[str, Any] = {"r": "8"}
    for part in filter(None, trainable.partition(":")[2].split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in ("r", "targets", "alpha"):
            raise unknown("option of lora", name, ["r", "targets", "alpha"])
        if not equals or not value:
            raise DpbenchError(f"option {name!r} of {trainable!r} has no value; expected {name}=value")
        options[name] = value
    for name in ("r", "alpha"):
        if name in options:
            if not options[name].isdecimal() or int(options[name]) < 1:
                raise DpbenchError(f"lora has {name}={options[name]}; expected a whole number, 1 or more")
            options[name] = int(options[name])
    if "targets" in options:
        options["targets"] = options["targets"].split("+")
    return options
