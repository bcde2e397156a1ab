"""Dataclasses from what JSON gives, strictly: nothing unknown, nothing missing, nothing of another type."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from dpbench.errors import DpbenchError, unknown


def decode(kind: Any, value: Any, where: str) -> Any:
    """``value``, as JSON gives it, as an instance of the type ``kind``; ``where`` names it in errors."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (UnionType, Union):
        words = [word for a in args for word in get_args(a)]
        if value in words or (value is None and NoneType in args):
            return value
        return decode(next(a for a in args if a is not NoneType), value, where)
    if is_dataclass(kind) and isinstance(value, dict):
        return _decode_fields(kind, value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(decode(args[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin is dict and isinstance(value, dict):
        return {k: decode(args[1], v, f"{where}.{k}") for k, v in value.items()}
    if isinstance(kind, type) and issubclass(kind, StrEnum) and isinstance(value, str):
        if value not in list(kind):
            raise unknown(where, value, [str(v) for v in kind])
        return kind(value)
    if kind is float and (type(value) in (int, float) or value in ("nan", "inf", "-inf")):
        return float(value)
    if kind in (int, str, bool) and type(value) is kind:
        return value
    expected = kind.__name__ if origin is None else str(kind)
    raise DpbenchError(f"{where} is {value!r:.60}, expected {expected}")


def _decode_fields(kind: Any, value: dict[str, Any], where: str) -> Any:
    hints = get_type_hints(kind)
    known = [f.name for f in fields(kind)]
    for name in value:
        if name not in known:
            raise unknown(f"field of {where}", name, known)
    for f in fields(kind):
        if f.name not in value and f.default is MISSING and f.default_factory is MISSING:
            raise DpbenchError(f"{where}.{f.name} is missing, expected {hints[f.name]}")
    return kind(**{name: decode(hints[name], v, f"{where}.{name}") for name, v in value.items()})
