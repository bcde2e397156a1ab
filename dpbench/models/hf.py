"""Models of Transformers: built from a configuration, with random weights and no download."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from dpbench.errors import DpbenchError, MissingExtra, Refused, unknown
from dpbench.models import chunks, texts
from dpbench.models.spec import Spec
from dpbench.models.task import Task
from dpbench.records import Workload

DEFAULT_T = 128
FEW = 4
"""Tokens that suffice to see how logits come about."""

TRAINED_BIAS = ("t5", "mt5", "umt5")
"""Model types with a trained bias in attention, which torch's fused CPU kernel cannot differentiate under vmap."""


@cache
def configurations() -> dict[str, dict[str, Any]]:
    """The shipped table of configurations, by name."""
    text = files("dpbench.models").joinpath("configs.toml").read_text()
    return tomllib.loads(text)


def build(spec: Spec, workload: Workload) -> Task:
    """The model of that name in the shipped table, or of a config.json.

    Encoders classify a sequence, as in GLUE; encoder-decoders translate; all others predict the next token.
    """
    try:
        import transformers
        from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES as ENCODERS
    except ImportError as error:
        raise MissingExtra("transformers", "models") from error
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call,unused-ignore]
    spec.refuse(workload, "image_size")
    if workload.attention not in (None, "eager", "sdpa"):
        raise unknown("attention", workload.attention, ("eager", "sdpa"))
    facts, source = _facts(spec)
    config, dropped = _config(spec, facts, workload)
    T = _length(spec, config, workload.seq_len)
    auto: Any
    if config.is_encoder_decoder:
        auto, task = transformers.AutoModelForSeq2SeqLM, texts.translation
    elif config.model_type in ENCODERS:
        config.num_labels = spec.settle("num_labels", "classes", workload) or 2
        auto, task = transformers.AutoModelForSequenceClassification, texts.classification
    else:
        auto, task = transformers.AutoModelForCausalLM, texts.prediction
    if task is not texts.classification:
        spec.refuse(workload, "classes")
    attention = workload.attention or ("eager" if config.model_type in TRAINED_BIAS else None)
    try:
        model = auto.from_config(config, attn_implementation=attention)
    except (ValueError, TypeError, ArithmeticError, AttributeError, ImportError) as error:
        raise _cannot(spec, error) from error
    losses, batches = task(config, T)
    if workload.loss_chunk is not None:
        if task is not texts.prediction:
            raise Refused(
                f"transformers:{spec.name} has no axis loss_chunk: got a model for {task.__name__}, expected one that "
                "predicts the next token. Leave loss_chunk out."
            )
        with torch.device("cpu"):
            few = texts.prediction(config, min(T, FEW))[1](2, 0)
        with torch.device("meta"):
            alike = auto.from_config(config, attn_implementation=attention)
            body = chunks.prove(alike, spec, {name: value.to("meta") for name, value in few.items()})
        losses = chunks.prediction(workload.loss_chunk, body)
    source = f"Transformers {transformers.__version__}, {source}, random weights, {dropped}"
    return Task(model, losses, batches, "text", source, T)


def _facts(spec: Spec) -> tuple[dict[str, Any], str]:
    if not spec.name.endswith(".json"):
        known = configurations()
        if spec.name not in known:
            raise unknown("Transformers model", spec.name, known, "Or give the path of a config.json.")
        facts = dict(known[spec.name])
        return facts, f"configuration of {facts.pop('from')} as shipped with dpbench"
    path = Path(spec.name)
    if not path.is_file():
        raise DpbenchError(f"no file {path}; expected a config.json of Transformers")
    try:
        facts = json.loads(path.read_text())
    except ValueError as error:
        raise DpbenchError(f"{path} is no JSON: {error}") from error
    if not isinstance(facts, dict) or "model_type" not in facts:
        raise DpbenchError(f"{path} has no model_type; expected a config.json of Transformers")
    for name in ("architectures", "transformers_version", "torch_dtype", "dtype", "_name_or_path"):
        facts.pop(name, None)
    return facts, f"configuration from {path}"


def _config(spec: Spec, facts: dict[str, Any], workload: Workload) -> tuple[Any, str]:
    """A configuration, and what is dropped in it.

    Everything goes through the constructor, which derives fields from others (the width of a head
    from that of the model, the layers of a decoder from those of the encoder).
    """
    import transformers

    kind = facts.pop("model_type")
    try:
        plain: Any = transformers.AutoConfig.for_model(kind)
    except ValueError as error:
        raise unknown("Transformers model type", kind, list(transformers.CONFIG_MAPPING)) from error
    aliases = plain.attribute_map
    defaults = plain.to_dict()
    options = spec.take({*defaults, *aliases, *facts, "dropout"})
    rate = options.pop("dropout", 0.0)
    if not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise DpbenchError(f"transformers:{spec.name} is given dropout={rate}; expected a number from 0 up to 1")
    given = {aliases.get(name, name): value for name, value in facts.items()}
    for name, value in {**defaults, **given}.items():
        if "drop" in name and isinstance(value, float):
            # Skipping layers at random is something else.
            given[name] = 0.0 if name == "layerdrop" or name.endswith("_layerdrop") else float(rate)
    own = {aliases.get(name, name): value for name, value in options.items()}
    given |= own
    layers = Spec(spec.family, spec.name, own).settle(
        aliases.get("num_hidden_layers", "num_hidden_layers"), "layers", workload
    )
    if layers is not None:
        given[aliases.get("num_hidden_layers", "num_hidden_layers")] = layers
        given.pop("layer_types", None)
        for name in ("num_decoder_layers", "decoder_layers"):
            if name in defaults and name not in own:
                given[name] = layers
    given["use_cache"] = False
    try:
        config: Any = transformers.AutoConfig.for_model(kind, **given)
    except Exception as error:  # Every configuration has checks, and errors, of its own.
        raise _cannot(spec, error) from error
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        if (getattr(config, name, None) or 0) >= config.vocab_size:
            setattr(config, name, None if name != "pad_token_id" else 0)
    exceptions = [f"{name} {value}" for name, value in own.items() if "drop" in name]
    return config, ", ".join([f"dropout {float(rate):g}", *exceptions])


def _length(spec: Spec, config: Any, asked: int | None) -> int:
    """T, which has to fit the positions that the model knows."""
    room = getattr(config, "max_position_embeddings", None)
    if room is None:
        return asked or DEFAULT_T
    # RoBERTa starts to count after the id of the padding.
    used = 2 if "roberta" in config.model_type else 0
    T = asked or min(DEFAULT_T, room - used)
    if T + used > room:
        raise DpbenchError(
            f"{spec.name} has {room} positions; got seq_len {T}. Give max_position_embeddings={T + used}."
        )
    return T


def _cannot(spec: Spec, error: Exception) -> DpbenchError:
    options = ", ".join(f"{name}={value}" for name, value in spec.options.items()) or "no options"
    return DpbenchError(f"transformers:{spec.name} cannot be built with {options}: {' '.join(str(error).split())}")
