"""What language models are trained for: losses and batches of text."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench import losses
from dpbench.batch import Batch
from dpbench.interface import Losses
from dpbench.models.batches import causal_mask, sequences
from dpbench.models.task import Batches

SPECIAL = 4
"""Ids below are special tokens (padding, separators) in all the vocabularies here."""


def classification(config: Any, T: int) -> tuple[Losses, Batches]:
    """One class for each sequence."""
    plain = sequences(T, config.vocab_size, classes=config.num_labels, lowest=SPECIAL)

    def classify(model: nn.Module, batch: Batch) -> Tensor:
        return losses.cross_entropy(model(**_inputs(batch)).logits, batch["labels"])

    return classify, _masked(plain, T, causal=False)


def translation(config: Any, T: int) -> tuple[Losses, Batches]:
    """T tokens from T tokens."""
    encoded = _masked(sequences(T, config.vocab_size, lowest=SPECIAL), T, causal=False)
    start = getattr(config, "decoder_start_token_id", None) or 0

    def translate(model: nn.Module, batch: Batch) -> Tensor:
        # Teacher forcing: the decoder reads the labels one step late.
        read = F.pad(batch["labels"][:, :-1], (1, 0), value=start)
        return losses.language_model(model(**_inputs(batch), decoder_input_ids=read).logits, batch["labels"])

    def batches(size: int, seed: int) -> Batch:
        return {**encoded(size, seed), "decoder_attention_mask": causal_mask(size, T)}

    return translate, batches


def prediction(config: Any, T: int) -> tuple[Losses, Batches]:
    """The next token, at every position."""
    masked = _masked(sequences(T, config.vocab_size, shifted=True, lowest=SPECIAL), T, causal=True)

    def predict(model: nn.Module, batch: Batch) -> Tensor:
        return losses.language_model(model(**_inputs(batch)).logits, batch["labels"])

    if config.model_type != "opt":
        return predict, masked

    def positioned(size: int, seed: int) -> Batch:
        # OPT counts positions from a mask of ones, which an additive one is not.
        return {**masked(size, seed), "position_ids": torch.arange(T).expand(size, T).contiguous()}

    return predict, positioned


def _inputs(batch: Batch) -> dict[str, Tensor]:
    return {name: value for name, value in batch.items() if name != "labels"}


def _masked(plain: Batches, T: int, *, causal: bool) -> Batches:
    """Add an additive attention mask: Transformers reads the values of any other, which tracing cannot."""

    def batches(size: int, seed: int) -> Batch:
        mask = causal_mask(size, T) if causal else torch.zeros(size, 1, T, T)
        return {**plain(size, seed), "attention_mask": mask}

    return batches
