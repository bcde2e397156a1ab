"""``dpbench layers``: T, d and p of every layer, and which norm is cheaper there."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from dpbench.cli.files import drawable
from dpbench.cli.workloads import MODEL, AsJson, Axes, SuiteName, takes, workloads
from dpbench.complexity.modules import Layer, decisions_of
from dpbench.decision import Decision
from dpbench.errors import DpbenchError
from dpbench.facts import Facts
from dpbench.reporting.columns import aligned
from dpbench.reporting.decisions import draw
from dpbench.reporting.numbers import count


@takes(*MODEL, "batch", "trainable")
def layers(
    axes: Axes,
    suite: SuiteName = None,
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

    asked = workloads(suite, {**axes, "batch": axes["batch"] or ["1"], "implementation": ["nonprivate"]})
    if plot is not None:
        check_plot(plot, len(asked))
    everything: list[dict[str, Any]] = []
    for workload in asked:
        found = decisions_of(of(Faked(workload)))
        everything += [{"model": workload.model, "batch": workload.batch, **as_object(*row)} for row in found]
        if not as_json:
            typer.echo("\n".join([workload.label(), *lines(found)]) + "\n")
        if plot is not None and not found:
            raise DpbenchError(f"{workload.label()} trains no matrix: there is no decision to draw")
        if plot is not None:
            drawn = [Decision(layer.name, whole.T, whole.d, whole.p) for layer, whole in found]
            draw(drawn, workload.label().replace(f" B={workload.batch}", ""), plot)
            typer.echo(f"{plot} written", err=True)
    if as_json:
        typer.echo(json.dumps(everything, indent=1))


def as_object(layer: Layer, whole: Facts) -> dict[str, Any]:
    """One use of a weight for machines."""
    facts = layer.facts
    return {
        "name": layer.name,
        **asdict(facts),
        "uses": layer.uses,
        "2T^2": 2 * facts.T**2,
        "pd": facts.p * facts.d,
        "less_space": choice(whole.ghost_needs_less_space),
        "fewer_flops": choice(whole.ghost_needs_fewer_flops),
        "fewer_flops_reused": choice(whole.ghost_needs_fewer_flops_than_reuse),
        "flops": {
            "product": facts.product_flops,
            "ghost_norm": facts.ghost_flops,
            "ghost_norm_picked": facts.ghost_flops if facts.norm_flops is None else facts.norm_flops,
        },
    }


def check_plot(path: Path, workloads: int) -> None:
    """Raise DpbenchError before anything is done for a picture that could not be drawn."""
    drawable(path)
    if workloads != 1:
        raise DpbenchError(f"a picture shows one workload, got {workloads}; give one model, T and image size")


def choice(ghost: bool) -> str:
    """The norm that a rule picks."""
    return "ghost" if ghost else "instantiate"


def lines(found: list[tuple[Layer, Facts]]) -> list[str]:
    """For people."""
    head = ["", "layer", "rule", "T", "d", "p", "2T^2", "pd", "less space"]
    head += ["ghost norm", "product", "fewer FLOPs", "if reused"]
    table = [head]
    for i, (layer, whole) in enumerate(found, 1):
        f = layer.facts
        name = f"{layer.name} (used {layer.uses} times)" if layer.uses > 1 else layer.name
        rule = f"{f.rule}, {f.groups} groups" if f.groups > 1 else f.rule
        sizes = [str(f.T), str(f.d), str(f.p), count(2 * f.T**2), count(f.p * f.d)]
        flops = [count(f.ghost_flops if f.norm_flops is None else f.norm_flops), count(f.product_flops)]
        row = [*sizes, choice(whole.ghost_needs_less_space), *flops, choice(whole.ghost_needs_fewer_flops)]
        table.append([str(i), name, rule, *row, choice(whole.ghost_needs_fewer_flops_than_reuse)])
    ghosts = [f"{i}, {layer.name}" for i, (layer, whole) in enumerate(found, 1) if whole.ghost_needs_less_space]
    return [
        *(f"  {line}" for line in aligned(table, left=3)),
        "",
        f"the first layer with a ghost norm by that rule: {ghosts[0] if ghosts else 'none'}",
        f"{len(ghosts)} of {len(found)} take the ghost norm by the rule 2T^2 < pd (Bu et al. 2022); parameters that "
        "are no matrices are instantiated always",
        "ghost norm: FLOPs of module 3, by the kernel that is picked; product: of each of the modules 1, 2a, 2b and 4",
        "fewer FLOPs: of the norm alone, by the paper's formula; if reused: where the instantiated gradient also gives",
        "the clipped sum; a weight that is used several times is decided once, over T of all its uses",
    ]
