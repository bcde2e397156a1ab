"""Analytic FLOPs: an implementation's modules, summed over the uses of weights.

For ``s = a W`` with a (B, T, d), W (d, p): modules 1, 2a, 2b and 4 take 2BTpd, module 5 2Bpd, module 3
2BT^2(p + g d) for g groups, nothing but elementwise work at T = 1. A first layer has no 2a, and an
embedding multiplies nothing: its rows are looked up and added.
Source: Bu, Wang, Zha, Karypis 2023, 2210.00038, table 1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dpbench.errors import DpbenchError
from dpbench.facts import PRODUCTS, Facts, added

KNOWN = ("1", "2a", "2b", "3", "4", "5")


@dataclass(frozen=True, slots=True)
class Layer:
    """One use of one parameter; it is one of ``uses`` of that parameter, which has ``size`` elements.

    A ``frozen`` one costs modules 1 and 2a alone, and a first one of these no 2a.
    """

    name: str
    facts: Facts
    uses: int = 1
    size: int = 0
    frozen: bool = False


def goes_one_by_one(modules: str) -> bool:
    """Whether an implementation goes through the examples of a batch one by one."""
    return modules.startswith("B x")


def is_readable(modules: str) -> bool:
    """Whether an implementation declares its modules, rather than something else in their place."""
    try:
        return bool(parts(modules, ghost=True) and parts(modules, ghost=False))
    except DpbenchError:
        return False


def parts(modules: str, *, ghost: bool) -> list[str]:
    """The modules of one layer: ``1 2a (3 2b or 4 5)`` is 1 2a 3 2b where the norm is a ghost norm, else 1 2a 4 5.

    ``B x (...)`` goes through the same for every example. What comes after a second 2a is done ``again``.
    Raises DpbenchError for anything else.
    """
    text = re.sub(r"\(([^()]*) or ([^()]*)\)", lambda m: m[1 if ghost else 2], modules)
    text = re.sub(r"^B x \(([^()]*)\)$", r"\1", text.strip())
    found = text.split()
    if not found or not set(found) <= set(KNOWN):
        raise DpbenchError(
            f"cannot read the modules {modules!r}; expected numbers of modules ({', '.join(KNOWN)}), with a choice "
            "between ghost norms and instantiation written as (3 or 4)"
        )
    return [f"{m} again" if found[: i + 1].count("2a") > 1 else m for i, m in enumerate(found)]


def sees_weights(modules: str) -> bool:
    """Whether autograd forms gradients of weights: wasted ones, or those of a second backward."""
    if not is_readable(modules):
        return False
    return any(
        "2a again" in used or any(used[i] == "2b" and not is_booked(used, i) for i in range(len(used)))
        for used in (parts(modules, ghost=True), parts(modules, ghost=False))
    )


def decided(modules: str, layers: Sequence[Layer]) -> list[str]:
    """The modules that one parameter goes through, given all its uses."""
    if layers[0].frozen:
        return [m for m in parts(modules, ghost=False) if m in ("1", "2a", "2a again")]
    whole = added([layer.facts for layer in layers], ghostable=layers[0].facts.matrix)
    return parts(modules, ghost=whole.ghost_needs_less_space if " or " in modules else whole.matrix)


def is_booked(used: Sequence[str], i: int) -> bool:
    """Whether the 2b at ``i`` is a clipped sum of kept output gradients, rather than autograd's."""
    return used[i] == "2b" and bool({"3", "4"} & set(used[:i]))


def of_parameter(layers: Sequence[Layer], modules: str, *, kernels: bool = False) -> Counter[str]:
    """FLOPs by module for one parameter and all its uses.

    ``kernels``: of the kernels that its rule picks (one Gram over the uses of a shared weight, one over the
    pixels of a convolution), rather than the paper's formulas.
    """
    costs: Counter[str] = Counter()
    used = decided(modules, layers)
    matrix, stored = layers[0].facts.matrix, 2 * layers[0].facts.B * layers[0].size
    for i, module in enumerate(used):
        if module in ("2a", "2a again"):
            costs[module] += sum(layer.facts.product_flops for layer in layers if not layer.facts.first)
        elif module == "5" or (is_booked(used, i) and not matrix):
            # What is no matrix was instantiated for its norm, and is added up from there.
            costs[module] += stored
        elif module == "3" and matrix and not (kernels and _is_joined_by_instantiating(layers)):
            costs[module] += _ghost(layers) if kernels else sum(layer.facts.ghost_flops for layer in layers)
        elif module in ("3", "4"):
            costs["4"] += sum(_instantiation(layer) if kernels else layer.facts.product_flops for layer in layers)
        else:
            costs[module] += sum(layer.facts.product_flops for layer in layers)
    return +costs


def _is_joined_by_instantiating(layers: Sequence[Layer]) -> bool:
    """Whether there is no norm over several uses without the per-sample gradients."""
    return len(layers) > 1 and any(layer.facts.rule == "convolution" for layer in layers)


def _instantiation(layer: Layer) -> int:
    picked = layer.facts.instantiation_flops
    return layer.facts.product_flops if picked is None else picked


def _ghost(layers: Sequence[Layer]) -> int:
    """The norm's kernels: uses of one weight are concatenated along T, and meet its lookups in one product more."""
    products = [layer.facts for layer in layers if layer.facts.rule in PRODUCTS]
    lookups = [layer.facts for layer in layers if layer.facts.rule not in PRODUCTS]
    if not products:
        return 0
    whole = added(products, ghostable=True)
    own = whole.ghost_flops if whole.norm_flops is None else whole.norm_flops
    return own + 2 * whole.B * whole.T * sum(f.T for f in lookups) * (lookups[0].p if lookups else 0)


def by_parameter(layers: Iterable[Layer]) -> dict[str, list[Layer]]:
    """Uses by parameter, in the order of the forward."""
    found: dict[str, list[Layer]] = {}
    for layer in layers:
        found.setdefault(layer.name, []).append(layer)
    return found


def decisions_of(found: Iterable[Layer]) -> list[tuple[Layer, Facts]]:
    """Each use of a trained matrix, and what its parameter's norm is decided by: T of all its uses together."""
    used = [layer for layer in found if layer.facts.matrix and not layer.frozen]
    wholes = {name: added([use.facts for use in uses], ghostable=True) for name, uses in by_parameter(used).items()}
    return [(layer, wholes[layer.name]) for layer in used]


def of_network(layers: Iterable[Layer], modules: str) -> Counter[str]:
    """FLOPs over all uses by module, by the paper's formulas."""
    total: Counter[str] = Counter()
    for (module, _), flops in of_formula(layers, modules).items():
        total[module] += flops
    return total


def of_formula(layers: Iterable[Layer], modules: str) -> Counter[tuple[str, str]]:
    """FLOPs by module and parameter, by the paper's formulas."""
    return _by_module(layers, modules, kernels=False)


def of_kernels(layers: Iterable[Layer], modules: str) -> Counter[tuple[str, str]]:
    """FLOPs by module and parameter, of the kernels that the rules pick: what a trace is to find."""
    return _by_module(layers, modules, kernels=True)


def _by_module(layers: Iterable[Layer], modules: str, *, kernels: bool) -> Counter[tuple[str, str]]:
    total: Counter[tuple[str, str]] = Counter()
    for name, uses in by_parameter(layers).items():
        for module, flops in of_parameter(uses, modules, kernels=kernels).items():
            total[module, name] += flops
    return total
