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
        return _last(model)
    if trainable.startswith("pattern:"):
        return {name for name in names if fnmatchcase(name, trainable.removeprefix("pattern:"))}
    raise unknown("trainable", trainable, CHOICES)


def _last(model: nn.Module) -> set[str]:
    """The classifier or head: what the model says it is, else the module of the last parameter."""
    says = getattr(model, "get_output_embeddings", None)
    head = says() if says is not None else None
    if head is None:
        layer = list(model.named_parameters())[-1][0].rpartition(".")[0]
        return {name for name, _ in model.named_parameters() if name.rpartition(".")[0] == layer}
    # By identity: a tied head has its only name in the embedding.
    own = {id(p) for p in head.parameters()}
    return {name for name, p in model.named_parameters() if id(p) in own}


def _lora(model: nn.Module, trainable: str) -> nn.Module:
    try:
        import peft
    except ImportError as error:
        raise MissingExtra("peft", "models") from error
    parts = [part for part in trainable.partition(":")[2].split(",") if part.strip()]
    options: dict[str, Any] = {name.strip(): value.strip() for name, _, value in (p.partition("=") for p in parts)}
    if bad := set(options) - {"r", "targets", "alpha"}:
        raise unknown("option of lora", sorted(bad)[0], ["r", "targets", "alpha"])
    for name in ("r", "alpha"):
        if name in options and not (options[name].isdigit() and int(options[name])):
            raise DpbenchError(f"lora has {name} = {options[name]!r}, expected a whole number from 1, for example r=8")
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
