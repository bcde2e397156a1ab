"""A prediction: what an implementation costs on a workload, by formulas and by a trace. No torch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dpbench.complexity.roofline import Seconds
from dpbench.complexity.space import Space
from dpbench.complexity.trace import Trace
from dpbench.records import Workload


@dataclass(frozen=True, slots=True)
class Prediction:
    """The costs of one step. ``trace`` is None where the implementation refuses, for ``reason``."""

    implementation: str
    workload: Workload
    parameters: int
    trainable: int
    modules: str
    """The implementation's, as it declares them."""
    analytic: Counter[str] | None
    """FLOPs of products with weights by module, by the paper's formulas; None where it declares no modules."""
    kernels: Counter[tuple[str, str]]
    """FLOPs by module and parameter, of the kernels that the tape's rules pick."""
    formula: Counter[tuple[str, str]]
    """Likewise, by the paper's formulas: of the kernels of who does without the tape."""
    space: Space | None
    trace: Trace | None
    on: str = "trace"
    reason: str = ""
    seconds: Seconds | None = None
    """On a card, where one was asked for."""

    @property
    def unexplained(self) -> Counter[tuple[str, str]]:
        """FLOPs by module and parameter that were traced and are of no kernel that was counted, or were not traced."""
        if self.trace is None or self.analytic is None:
            return Counter()
        found = self.trace.by(lambda o: (o.module, o.parameter), (o for o in self.trace.operations if o.parameter))
        apart = {key: found[key] - self.kernels[key] for key in found | self.kernels}
        return Counter({key: n for key, n in apart.items() if n and found[key] != self.formula[key]})
