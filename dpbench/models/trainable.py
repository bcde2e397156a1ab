"""Which parameters are asked to be trained."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from torch import nn

from dpbench.errors import DpbenchError, MissingExtra, unknown

CHOICES = {
    "all": "every parameter",
    "biases": "biases alone (BiTFiT)",
    "last": "the last layer",
    "norms": "norm layers alone",
    "pattern:GLOB": "parameters whose name matches, for example pattern:*.attn.*",
    "lora:r=8,targets=A+B": "low-rank adapters on the named modules, through peft",
}


def select(model: nn.Module, trainable: str) -> nn.Module:
    """Freeze all but what is asked for; with adapters the model that is returned is another."""
    if trainable == "all":
        return model
    if trainable.startswith("lora"):
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
        layer = names[-1].rpartition(".")[0]
        return {name for name in names if name.rpartition(".")[0] == layer}
    if trainable.startswith("pattern:"):
        return {name for name in names if fnmatchcase(name, trainable.removeprefix("pattern:"))}
    raise unknown("trainable", trainable, CHOICES)


def _lora(model: nn.Module, trainable: str) -> nn.Module:
    try:
        import peft
    except ImportError as error:
        raise MissingExtra("peft", "models") from error
    options: dict[str, Any] = dict(part.split("=", 1) for part in trainable.partition(":")[2].split(",") if "=" in part)
    if bad := set(options) - {"r", "targets", "alpha"}:
        raise unknown("option of lora", sorted(bad)[0], ["r", "targets", "alpha"])
    targets = options["targets"].split("+") if "targets" in options else None
    rank = int(options.get("r", 8))
    config = peft.LoraConfig(
        r=rank,
        lora_alpha=int(options.get("alpha", rank)),
        target_modules=targets,
        lora_dropout=0.0,
        init_lora_weights=False,
    )
    try:
        adapted: nn.Module = peft.get_peft_model(model, config)
    except ValueError as error:
        raise DpbenchError(f"lora cannot be put on this model: {error} Give targets=NAME+NAME.") from error
    return adapted
