"""Analytic costs: an implementation's modules, summed over the uses of weights.

For ``s = a W`` with a (B, T, d), W (d, p): modules 1, 2a, 2b and 4 take 2BTpd, module 5 2Bpd, module 3
2BT^2(p + g d) for g groups, nothing but elementwise work at T = 1. A first layer has no 2a, and an
embedding multiplies nothing: its rows are looked up and added.
Source: Bu, Wang, Zha, Karypis 2023, 2210.00038, table 1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from dpbench.errors import DpbenchError
from dpbench.facts import Facts

KNOWN = ("1", "2a", "2b", "3", "4", "5")


def is_readable(modules: str) -> bool:
    """Whether an implementation declares its modules, rather than something else in their place."""
    try:
        return bool(parts(modules, ghost=True) and parts(modules, ghost=False))
    except DpbenchError:
        return False


def parts(modules: str, *, ghost: bool) -> list[str]:
    """The modules of one layer: ``1 2a (3 2b or 4 5)`` is 1 2a 3 2b where the norm is a ghost norm, else 1 2a 4 5.

    ``B x (...)`` goes through the same for every example. Raises DpbenchError for anything else.
    """
    text = re.sub(r"\(([^()]*) or ([^()]*)\)", lambda m: m[1 if ghost else 2], modules)
    text = re.sub(r"^B x \(([^()]*)\)$", r"\1", text.strip())
    found = text.split()
    if not found or not set(found) <= set(KNOWN):
        raise DpbenchError(
            f"cannot read the modules {modules!r}; expected numbers of modules ({', '.join(KNOWN)}), with a choice "
            "between ghost norms and instantiation written as (3 or 4)"
        )
    return found


def of_layer(facts: Facts, modules: str) -> Counter[str]:
    """FLOPs of one use of a weight by module."""
    used = parts(modules, ghost=facts.ghost_needs_less_space if " or " in modules else facts.matrix)
    costs: Counter[str] = Counter()
    if not facts.matrix:
        # Elementwise but for the clipped sum of what was kept, a product of (B,) and (B, size).
        for i, module in enumerate(used):
            if module == "5" or (module == "2b" and _is_booked(used[:i])):
                costs[module] += 2 * facts.B * facts.d * facts.p
        return costs
    if facts.rule == "embedding":
        # Rows are looked up and added, not multiplied; only stored (B, V, d) gradients are.
        return Counter({"5": 2 * facts.B * facts.p * facts.d} if "5" in used else {})
    whole = facts.product_flops
    each = {
        "1": whole,
        "2a": 0 if facts.first else whole,
        "2b": whole,
        "3": facts.ghost_flops,
        "4": whole,
        "5": 2 * facts.B * facts.p * facts.d,
    }
    for module in used:
        costs[module] += each[module]
    return costs


def _is_booked(before: list[str]) -> bool:
    """Whether a 2b after these modules is from kept output gradients, rather than autograd's."""
    return before[-1:] != ["2a"] and ("3" in before or "4" in before)


def of_network(uses: Iterable[tuple[str, Facts]], modules: str) -> Counter[str]:
    """FLOPs over all uses by module; what is stored for a parameter is stored, and added up, once."""
    total: Counter[str] = Counter()
    seen: set[str] = set()
    for name, facts in uses:
        costs = of_layer(facts, modules)
        if name in seen:
            del costs["5"]
        seen.add(name)
        total += costs
    return total
