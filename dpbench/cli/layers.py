"""``dpbench layers``: T, d and p of every layer, and which norm is cheaper there."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

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
from dpbench.errors import DpbenchError
from dpbench.reporting.columns import aligned
from dpbench.reporting.decisions import Decision, draw
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
    plot: Annotated[Path | None, typer.Option(help="Draw 2T^2 and pd over the depth, as .png, .svg or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the layers of a model with T, d, p, and which norm of theirs needs less space or fewer FLOPs.

    \b
    Exit codes:
      0  listed
      2  a mistake in what was asked, or a model that is refused
    """
    from dpbench.complexity.faked import Faked
    from dpbench.complexity.layers import layers as of

    asked = workloads(
        suite, ["nonprivate"], model=model, batch=batch or ["1"], seq_len=seq_len, image_size=image_size, layers=layers,
        classes=classes, attention=attention, norm=norm, trainable=trainable,
    )  # fmt: skip
    if plot is not None:
        check_plot(plot, len(asked))
    everything: list[dict[str, Any]] = []
    for workload in asked:
        found = [layer for layer in of(Faked(workload)) if layer.facts.matrix and not layer.frozen]
        everything += [{"model": workload.model, "batch": workload.batch, **as_object(layer)} for layer in found]
        if not as_json:
            typer.echo("\n".join([workload.label(), *lines(found)]) + "\n")
        if plot is not None:
            decisions = [Decision(layer.name, 2 * layer.facts.T**2, layer.facts.p * layer.facts.d) for layer in found]
            draw(decisions, workload.label().replace(f" B={workload.batch}", ""), plot)
            typer.echo(f"{plot} written", err=True)
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
        "flops": {
            "product": facts.product_flops,
            "ghost_norm": facts.ghost_flops,
            "ghost_norm_picked": facts.ghost_flops if facts.norm_flops is None else facts.norm_flops,
        },
    }


def check_plot(path: Path, workloads: int) -> None:
    """Raise DpbenchError before anything is done for a picture that could not be drawn."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise DpbenchError(f"cannot draw {path}, expected a name that ends in .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise DpbenchError(f"cannot draw {path}, there is no directory {path.parent}")
    if workloads != 1:
        raise DpbenchError(f"a picture shows one workload, got {workloads}; give one model, T and image size")


def choice(ghost: bool) -> str:
    """The norm that a rule picks."""
    return "ghost" if ghost else "instantiate"


def lines(found: list[Layer]) -> list[str]:
    """For people."""
    head = [
        "",
        "layer",
        "rule",
        "T",
        "d",
        "p",
        "2T^2",
        "pd",
        "less space",
        "ghost norm",
        "product",
        "fewer FLOPs",
        "if reused",
    ]
    table = [head]
    for i, layer in enumerate(found, 1):
        f = layer.facts
        name = f"{layer.name} (used {layer.uses} times)" if layer.uses > 1 else layer.name
        rule = f"{f.rule}, {f.groups} groups" if f.groups > 1 else f.rule
        sizes = [str(f.T), str(f.d), str(f.p), count(2 * f.T**2), count(f.p * f.d)]
        flops = [count(f.ghost_flops if f.norm_flops is None else f.norm_flops), count(f.product_flops)]
        less, fewer, reused = f.ghost_needs_less_space, f.ghost_needs_fewer_flops, f.ghost_needs_fewer_flops_than_reuse
        table.append([str(i), name, rule, *sizes, choice(less), *flops, choice(fewer), choice(reused)])
    ghosts = sum(layer.facts.ghost_needs_less_space for layer in found)
    first = next((f"{i}, {x.name}" for i, x in enumerate(found, 1) if x.facts.ghost_needs_less_space), "none")
    return [
        *(f"  {line}" for line in aligned(table, left=3)),
        "",
        f"the first layer with a ghost norm by that rule: {first}",
        f"{ghosts} of {len(found)} take the ghost norm by the rule 2T^2 < pd (Bu et al. 2022); parameters that are no "
        "matrices are instantiated always",
        "ghost norm: FLOPs of module 3, by the kernel that is picked; product: of each of the modules 1, 2a, 2b and 4",
        "fewer FLOPs: of the norm alone, by the paper's formula; if reused: where the instantiated gradient also gives",
        "the clipped sum",
    ]
