"""What each implementation costs on a workload: counted by its modules, and traced through its real code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dpbench.complexity.faked import Faked
from dpbench.complexity.layers import Layer, layers
from dpbench.complexity.modules import of_network
from dpbench.complexity.trace import Trace, traced
from dpbench.errors import Refused
from dpbench.interface import Step
from dpbench.records import Workload
from dpbench.registry import load


@dataclass(frozen=True, slots=True)
class Prediction:
    """The costs of one step. ``trace`` is None where the implementation refuses, for ``reason``."""

    implementation: str
    workload: Workload
    parameters: int
    trainable: int
    resident: int
    """Bytes of parameters, buffers and batch, to which the peak is added."""
    analytic: Counter[str]
    """FLOPs of products with weights by module, by the paper's formulas."""
    trace: Trace | None
    reason: str = ""

    @property
    def other(self) -> int:
        """FLOPs that the modules do not count: attention's products, other kernels than the paper's."""
        return self.trace.total - sum(self.analytic.values()) if self.trace else 0


def predict(workload: Workload, implementations: Sequence[str]) -> Iterator[Prediction]:
    """One prediction for each implementation, as they come.

    Raises:
        DpbenchError: for an unknown model, implementation or option.
    """
    whole = Faked(workload)
    uses = layers(whole)
    for name in implementations:
        modules = load(name).MODULES
        trace, reason = None, ""
        try:
            trace = _by_examples(name, workload) if modules.startswith("B x") else _traced(name, whole)
        except Refused as error:
            reason = str(error)
        analytic = of_network([(layer.name, layer.facts) for layer in uses], modules)
        yield Prediction(name, workload, whole.parameters, whole.trainable, whole.resident, analytic, trace, reason)


def _traced(name: str, faked: Faked) -> Trace:
    from dpbench.built import clip_of
    from dpbench.preparation import prepare

    with faked.mode:
        step = prepare(name, faked.model, faked.losses, clip_of(faked.workload))
        try:
            # The first step makes a plan; what is traced is one like all that follow.
            step(faked.batch)
            faked.model.zero_grad(set_to_none=True)
            return traced(_once(step, faked), faked.tensors)
        finally:
            step.close()
            faked.model.zero_grad(set_to_none=True)


def _once(step: Step, faked: Faked) -> Callable[[], object]:
    return lambda: step(faked.batch)


def _by_examples(name: str, workload: Workload) -> Trace:
    """Of an implementation that goes through the examples one by one: from one and two of them."""
    one, two = (_traced(name, Faked(replace(workload, batch=n))) for n in (1, 2))
    each = {module: two.flops[module] - one.flops[module] for module in two.flops}
    flops = Counter({module: one.flops[module] + (workload.batch - 1) * each[module] for module in each})
    return Trace(flops, two.peak if workload.batch > 1 else one.peak, two.peak_in)


__all__ = ["Layer", "Prediction", "predict"]
