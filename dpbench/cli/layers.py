"""``dpbench layers``: T, d and p of every layer, and which norm is cheaper there."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import typer

from dpbench.cli.workloads import (
    AsJson,
    Attention,
    Batch,
    Classes,
    ImageSize,
    Layers,
    Model,
    Norm,
    SeqLen,
    SuiteName,
    Trainable,
    workloads,
)
from dpbench.complexity.modules import Layer
from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import count


def layers(
    suite: SuiteName = None,
    model: Model = None,
    batch: Batch = None,
    seq_len: SeqLen = None,
    image_size: ImageSize = None,
    layers: Layers = None,
    classes: Classes = None,
    attention: Attention = None,
    norm: Norm = None,
    trainable: Trainable = None,
    as_json: AsJson = False,
) -> None:
    """List the layers of a model with T, d, p, and which norm of theirs needs less space or fewer FLOPs."""
    from dpbench.complexity.faked import Faked
    from dpbench.complexity.layers import layers as of

    asked = workloads(
        suite, ["nonprivate"], model=model, batch=batch or ["1"], seq_len=seq_len, image_size=image_size, layers=layers,
        classes=classes, attention=attention, norm=norm, trainable=trainable,
    )  # fmt: skip
    everything: list[dict[str, Any]] = []
    for workload in asked:
        found = [layer for layer in of(Faked(workload)) if layer.facts.matrix and not layer.frozen]
        everything += [{"model": workload.model, "batch": workload.batch, **as_object(layer)} for layer in found]
        if not as_json:
            typer.echo("\n".join([workload.label(), *lines(found)]) + "\n")
    if as_json:
        typer.echo(json.dumps(everything, indent=1))


def as_object(layer: Layer) -> dict[str, Any]:
    """One use of a weight for machines."""
    facts = layer.facts
    return {
        "name": layer.name,
        **asdict(facts),
        "uses": layer.uses,
        "2T^2": 2 * facts.T**2,
        "pd": facts.p * facts.d,
        "less_space": choice(facts.ghost_needs_less_space),
        "fewer_flops": choice(facts.ghost_needs_fewer_flops),
        "fewer_flops_reused": choice(facts.ghost_needs_fewer_flops_than_reuse),
    }


def choice(ghost: bool) -> str:
    """The norm that a rule picks."""
    return "ghost" if ghost else "instantiate"


def lines(found: list[Layer]) -> list[str]:
    """For people."""
    table = [["layer", "rule", "T", "d", "p", "2T^2", "pd", "less space", "fewer FLOPs", "if reused"]]
    for layer in found:
        f = layer.facts
        name = f"{layer.name} (used {layer.uses} times)" if layer.uses > 1 else layer.name
        rule = f"{f.rule}, {f.groups} groups" if f.groups > 1 else f.rule
        sizes = [str(f.T), str(f.d), str(f.p), count(2 * f.T**2), count(f.p * f.d)]
        rules = (f.ghost_needs_less_space, f.ghost_needs_fewer_flops, f.ghost_needs_fewer_flops_than_reuse)
        table.append([name, rule, *sizes, *map(choice, rules)])
    ghosts = sum(layer.facts.ghost_needs_less_space for layer in found)
    return [
        *(f"  {line}" for line in aligned(table, left=2)),
        "",
        f"{ghosts} of {len(found)} take the ghost norm by the rule 2T^2 < pd (Bu et al. 2022); parameters that are no "
        "matrices are instantiated always",
        "fewer FLOPs: of the norm alone; if reused: where the instantiated gradient also gives the clipped sum",
    ]
