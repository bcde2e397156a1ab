"""The decoding of :mod:`dpbench.decoding`, compiled: for results of a hundred thousand records.

pydantic's core parses JSON, checks it against a schema and builds the dataclasses in one pass. Its
schema is made from the type here, since pydantic itself would take longer to import than a small file
takes to read. It accepts nothing that :func:`dpbench.decoding.decode` would not, gives the same value,
and says nothing fit to be shown: what it rejects is decoded again there, which tells what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic_core import CoreConfig, CoreSchema, SchemaValidator
from pydantic_core import core_schema as core

STRICT: CoreConfig = {"strict": True}
"""A dataclass does not take over the configuration of what it stands in: each is given this."""

SCALARS = {int: core.int_schema(), float: core.float_schema(), str: core.str_schema(), bool: core.bool_schema()}


def validator(kind: type, given: Mapping[str, CoreSchema]) -> SchemaValidator:
    """What turns JSON into the dataclass ``kind``; ValidationError, a ValueError, where it does not fit.

    ``given``: schemas that stand for those of its own fields. A name that is no field of it has to be
    there as well, and is left out of the value.
    """
    return SchemaValidator(_of_dataclass(kind, given), config=STRICT)


def _of_dataclass(kind: Any, given: Mapping[str, CoreSchema]) -> CoreSchema:
    hints, known = get_type_hints(kind), fields(kind)
    names = [f.name for f in known]
    made = [core.dataclass_field(f.name, given.get(f.name) or _optional(_of(hints[f.name]), f)) for f in known]
    made += [core.dataclass_field(name, schema, init_only=True) for name, schema in given.items() if name not in names]
    arguments = core.dataclass_args_schema(kind.__name__, made, extra_behavior="forbid")
    slots = "__slots__" in vars(kind)
    return core.dataclass_schema(kind, arguments, names, slots=slots, frozen=True, config=STRICT)


def _optional(schema: CoreSchema, field: Any) -> CoreSchema:
    if field.default is not MISSING:
        return core.with_default_schema(schema, default=field.default)
    if field.default_factory is not MISSING:
        return core.with_default_schema(schema, default_factory=field.default_factory)
    return schema


def _of(kind: Any) -> CoreSchema:
    origin, args = get_origin(kind), get_args(kind)
    if kind in SCALARS:
        return SCALARS[kind]
    if kind is Any:
        return core.any_schema()
    if origin in (UnionType, Union):
        first, *others = [_of(a) for a in args if a is not NoneType]
        one = core.union_schema([first, *others], mode="left_to_right") if others else first
        return core.nullable_schema(one) if NoneType in args else one
    if origin is Literal:
        return core.literal_schema(list(args))
    if origin is tuple:
        return core.tuple_schema([_of(args[0])], variadic_item_index=0)
    if origin is dict:
        return core.dict_schema(core.str_schema(), _of(args[1]))
    if issubclass(kind, StrEnum):
        return core.enum_schema(kind, list(kind), sub_type="str")
    assert is_dataclass(kind)
    return _of_dataclass(kind, {})
