"""``dpbench system``: what on this machine would disturb a measurement."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from dpbench.system.finding import Finding


def system(
    as_json: Annotated[bool, typer.Option("--json", help="Hardware, software and findings as an object.")] = False,
) -> None:
    """Say what on this machine would disturb a measurement, and how to mend it.

    It looks for a second and computes for two; it changes nothing, and exits 0.
    """
    from dpbench.environment import environment
    from dpbench.system import findings, noise

    where = environment()
    found = list(findings(where))
    seen = noise.probe()
    found.append(noise.finding(seen))
    if as_json:
        made = {"environment": where, "findings": [asdict(f) for f in found], "noise": asdict(seen)}
        typer.echo(json.dumps(made, indent=1, allow_nan=False))
    else:
        typer.echo("\n".join([*heading(where), "", *(line for f in found for line in lines(f)), "", verdict(found)]))


def heading(where: Mapping[str, Any]) -> list[str]:
    """Hardware and software; flags that are not set are left out."""
    machine, flags = where["machine"], {k: v for k, v in where["flags"].items() if v is not None}
    gpus = [f"{gpu['name']}, {gpu['memory_gib']} GiB" for gpu in machine["gpus"]]
    hardware = [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['logical_cores']} CPUs, {machine['memory_gib']} GiB",
        *gpus,
        f"id {machine['id']}",
    ]
    software = [f"{name} {value}" for name, value in where["versions"].items() if value is not None]
    return [
        *_wrapped("hardware", "; ".join(hardware)),
        *_wrapped("software", ", ".join([f"dpbench {where['dpbench']['version']}", *software])),
        *_wrapped("flags", ", ".join(f"{name} {_said(value)}" for name, value in flags.items())),
    ]


def lines(finding: Finding) -> list[str]:
    """One finding, its remedy below it."""
    shown = _wrapped(finding.verdict, f"{finding.name}: {finding.text}")
    return shown + (_wrapped("  fix", finding.fix) if finding.fix else [])


def verdict(found: list[Finding]) -> str:
    """All of it in one line."""
    names = [f.name for f in found if f.verdict == "disturbs"]
    return f"what disturbs: {', '.join(names)}" if names else "nothing that was looked at disturbs"


def _said(value: Any) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        f"{label:<10}{text}", 118, subsequent_indent=" " * 10, break_long_words=False, break_on_hyphens=False
    )
