"""Whether figures of two places may be compared, and what else differs. No torch here.

Both arguments are what :func:`dpbench.environment.environment` gave and a results file kept, of any schema. Hardware
decides; software and its flags are listed. What only one of the two recorded is not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Environment = Mapping[str, Any]

_REVISION = 12
"""Digits of a commit that are shown."""


def same_hardware(a: Environment, b: Environment) -> bool:
    """Whether both are known to be machines of the same hardware."""
    first, second = _part(a, "machine").get("id"), _part(b, "machine").get("id")
    return first is not None and first == second


def hardware_differences(a: Environment, b: Environment) -> list[str]:
    """What makes two machines different: ``cpu AMD EPYC -> Intel Xeon``."""
    return differing(_part(a, "machine"), _part(b, "machine"), "none")


def differences(a: Environment, b: Environment) -> list[str]:
    """What differs in software, in flags and in how the system is set.

    For people: ``torch 2.14.1 -> 2.15.0``, ``OMP_NUM_THREADS 1 -> unset``, ``governor powersave -> performance``.
    """
    return [
        *differing(_ours(a), _ours(b), "unknown"),
        *differing(_part(a, "versions"), _part(b, "versions"), "none"),
        *differing(_part(a, "flags"), _part(b, "flags"), "unset"),
    ]


def library_differences(a: Environment, b: Environment) -> list[str]:
    """What may change the operators of a step although our own source does not: versions of libraries."""
    first, second = ({k: v for k, v in _part(e, "versions").items() if k not in ("system", "driver")} for e in (a, b))
    return differing(first, second, "none")


def _ours(environment: Environment) -> dict[str, Any]:
    return {"dpbench" if k == "version" else f"dpbench {k}": v for k, v in _part(environment, "dpbench").items()}


def _part(environment: Environment, name: str) -> Mapping[str, Any]:
    part = environment.get(name)
    return part if isinstance(part, Mapping) else {}


def differing(a: Mapping[str, Any], b: Mapping[str, Any], missing: str = "unset") -> list[str]:
    """What differs of what both have: ``name old -> new``; ``missing`` is said for None."""
    names = [name for name in a if name != "id" and name in b and a[name] != b[name]]
    return [f"{name} {_said(a[name], name, missing)} -> {_said(b[name], name, missing)}" for name in names]


def _said(value: Any, name: str, missing: str) -> str:
    if value is None:
        return missing
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ", ".join(" ".join(map(str, v.values())) if isinstance(v, dict) else str(v) for v in value) or missing
    text = str(value)
    if name == "dpbench revision":
        commit, plus, changes = text.partition("+")
        return commit[:_REVISION] + plus + changes
    return text if text else '""'
