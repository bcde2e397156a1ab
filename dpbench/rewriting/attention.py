"""``F.multi_head_attention_forward`` as linear layers around an attention that has no weights."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from torch.nn import functional as F


def _body(function: Any) -> Any:
    """The function as it is written, without its question whether someone else is to answer for it."""
    names = {**vars(F), "has_torch_function": lambda _: False}
    body = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    body.__kwdefaults__ = function.__kwdefaults__
    return body


multi_head = _body(F.multi_head_attention_forward)
"""Takes and gives what ``F.multi_head_attention_forward`` does, through F.linear and attention or softmax.

Self-attention has one linear layer for queries, keys and values, any other one for each part of the weight.
"""
