"""Models of Transformers: built from a configuration, with random weights and no download."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dpbench import losses
from dpbench.batch import Batch
from dpbench.errors import DpbenchError, MissingExtra, unknown
from dpbench.models.batches import causal_mask, sequences
from dpbench.models.spec import Spec
from dpbench.models.task import Batches, Task
from dpbench.records import Workload

ENCODERS = ("bert", "roberta", "distilbert", "electra", "deberta-v2", "albert")
"""Model types that classify a sequence, as in GLUE; T5 translates, all others predict the next token."""

SPECIAL = 4
"""Ids below are special tokens (padding, separators) in all the vocabularies here."""


@cache
def configurations() -> dict[str, dict[str, Any]]:
    """The shipped table of configurations, by name."""
    text = files("dpbench.models").joinpath("configs.toml").read_text()
    return tomllib.loads(text)


def build(spec: Spec, workload: Workload) -> Task:
    """The model of that name in the shipped table, or of a config.json."""
    try:
        import transformers
    except ImportError as error:
        raise MissingExtra("transformers", "models") from error
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    facts, source = _facts(spec)
    kind = facts.pop("model_type")
    T = workload.seq_len or 128
    try:
        config = transformers.AutoConfig.for_model(kind, use_cache=False)
    except ValueError as error:
        raise unknown("Transformers model type", kind, list(transformers.CONFIG_MAPPING)) from error
    try:
        _set(config, spec, facts, workload)
    except DpbenchError:
        raise
    except Exception as error:  # what a configuration raises for a field of the wrong type differs by version
        raise DpbenchError(f"transformers:{spec.name} cannot be built: {' '.join(str(error).split())}") from error
    room = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if room is not None and room - (2 if kind == "roberta" else 0) < T and kind != "t5":
        raise DpbenchError(f"{spec.name} has {room} positions; got seq_len {T}. Give max_position_embeddings={T + 2}.")
    attention = workload.attention or "sdpa"
    if attention not in ("eager", "sdpa"):
        raise unknown("attention", attention, ("eager", "sdpa"))
    if kind in ENCODERS:
        config.num_labels = workload.classes or 2
        auto: Any = transformers.AutoModelForSequenceClassification
    elif kind == "t5":
        auto = transformers.AutoModelForSeq2SeqLM
    else:
        auto = transformers.AutoModelForCausalLM
    try:
        model = auto.from_config(config, attn_implementation=attention)
    except ValueError as error:
        raise DpbenchError(f"transformers:{spec.name} cannot be built: {error}") from error
    loss, batches = _task(kind, config, T)
    source = f"Transformers {transformers.__version__}, {source}, random weights, dropout {_dropout(spec):g}"
    return Task(model.train(), loss, batches, "text", source, T)


def _facts(spec: Spec) -> tuple[dict[str, Any], str]:
    if spec.name.endswith(".json"):
        path = Path(spec.name)
        if not path.is_file():
            raise DpbenchError(f"no file {path}; expected a config.json of Transformers")
        try:
            facts = json.loads(path.read_text())
        except json.JSONDecodeError as error:
            raise DpbenchError(f"{path} is no JSON: {error}") from error
        if "model_type" not in facts:
            raise DpbenchError(f"{path} has no model_type; expected a config.json of Transformers")
        for name in ("architectures", "transformers_version", "torch_dtype", "dtype", "_name_or_path"):
            facts.pop(name, None)
        return facts, f"configuration from {path}"
    known = configurations()
    if spec.name not in known:
        raise unknown("Transformers model", spec.name, known, "Or give the path of a config.json.")
    facts = dict(known[spec.name])
    return facts, f"configuration of {facts.pop('from')} as shipped with dpbench"


def _dropout(spec: Spec) -> float:
    value = spec.options.get("dropout", 0.0)
    if type(value) not in (int, float) or not 0 <= value < 1:
        raise DpbenchError(f"dropout is {value!r}, expected a number from 0 up to 1")
    return float(value)


def _set(config: Any, spec: Spec, facts: dict[str, Any], workload: Workload) -> None:
    """Put the table's facts, then dropout, then the axes, then the user's options into a configuration."""
    fields = {*config.to_dict(), *config.attribute_map}
    for name, value in facts.items():
        if name == "rope_theta":
            config.rope_parameters = {"rope_type": "default", "rope_theta": value}
        else:
            setattr(config, name, value)
    for name in fields:
        if "drop" in name and isinstance(getattr(config, name, None), float):
            setattr(config, name, _dropout(spec))
    if workload.layers is not None:
        config.num_hidden_layers = workload.layers
        if "num_decoder_layers" in fields:
            config.num_decoder_layers = workload.layers
    options = {name: value for name, value in spec.options.items() if name != "dropout"}
    for name, value in Spec(spec.family, spec.name, options).take({*fields, "dropout"}).items():
        setattr(config, name, value)
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        if (getattr(config, name, None) or 0) >= config.vocab_size:
            setattr(config, name, None if name != "pad_token_id" else 0)


def _task(kind: str, config: Any, T: int) -> tuple[Any, Batches]:
    if kind in ENCODERS:
        plain = sequences(T, config.vocab_size, classes=config.num_labels, lowest=SPECIAL)

        def classify(model: nn.Module, batch: Batch) -> Tensor:
            out = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
            return losses.cross_entropy(out.logits, batch["labels"])

        return classify, _masked(plain, T, causal=False)
    if kind == "t5":
        plain = sequences(T, config.vocab_size, lowest=SPECIAL)

        def translate(model: nn.Module, batch: Batch) -> Tensor:
            # Teacher forcing: the decoder reads the labels one step late, after the start token 0.
            decoder = torch.nn.functional.pad(batch["labels"][:, :-1], (1, 0))
            out = model(
                input_ids=batch["input_ids"],
                attention_mask=batch["attention_mask"],
                decoder_input_ids=decoder,
                decoder_attention_mask=batch["decoder_attention_mask"],
            )
            return losses.language_model(out.logits, batch["labels"])

        encoded = _masked(plain, T, causal=False)

        def batches(size: int, seed: int) -> Batch:
            return {**encoded(size, seed), "decoder_attention_mask": causal_mask(size, T)}

        return translate, batches
    plain = sequences(T, config.vocab_size, shifted=True, lowest=SPECIAL)

    def predict(model: nn.Module, batch: Batch) -> Tensor:
        inputs = {name: value for name, value in batch.items() if name != "labels"}
        return losses.language_model(model(**inputs).logits, batch["labels"])

    masked = _masked(plain, T, causal=True)
    if kind != "opt":
        return predict, masked

    def positioned(size: int, seed: int) -> Batch:
        # OPT counts positions from a mask of ones, which an additive one is not.
        return {**masked(size, seed), "position_ids": torch.arange(T).expand(size, T).contiguous()}

    return predict, positioned


def _masked(plain: Batches, T: int, *, causal: bool) -> Batches:
    """Add an additive attention mask: Transformers reads the values of any other, which tracing cannot."""

    def batches(size: int, seed: int) -> Batch:
        mask = causal_mask(size, T) if causal else torch.zeros(size, 1, T, T)
        return {**plain(size, seed), "attention_mask": mask}

    return batches
