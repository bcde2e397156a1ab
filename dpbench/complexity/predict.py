"""What each implementation costs on a workload: counted by its modules, and traced through its real code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dpbench.built import clip_of
from dpbench.complexity.faked import Faked
from dpbench.complexity.layers import layers
from dpbench.complexity.meter import traced
from dpbench.complexity.modules import is_readable, of_network
from dpbench.complexity.trace import Trace, extrapolated
from dpbench.errors import Refused
from dpbench.preparation import prepare
from dpbench.records import Workload
from dpbench.registry import load
from dpbench.step import Training, summed


@dataclass(frozen=True, slots=True)
class Prediction:
    """The costs of one step. ``trace`` is None where the implementation refuses, for ``reason``."""

    implementation: str
    workload: Workload
    parameters: int
    trainable: int
    analytic: Counter[str] | None
    """FLOPs of products with weights by module, by the paper's formulas; None where it declares no modules."""
    trace: Trace | None
    reason: str = ""

    @property
    def other(self) -> int:
        """FLOPs that the modules do not count: attention's products, other kernels than the paper's."""
        return 0 if self.trace is None or self.analytic is None else self.trace.total - self.analytic.total()


def predict(workload: Workload, implementations: Sequence[str]) -> Iterator[Prediction]:
    """One prediction for each implementation, as they come.

    Raises:
        DpbenchError: for an unknown model, implementation or option.
    """
    whole = Faked(workload)
    uses = [(layer.name, layer.facts) for layer in layers(whole)]
    for name in implementations:
        modules = load(name).MODULES
        analytic = of_network(uses, modules) if is_readable(modules) else None
        try:
            trace, reason = trace_of(name, workload, whole), ""
        except Refused as error:
            trace, reason = None, str(error)
        yield Prediction(name, workload, whole.parameters, whole.trainable, analytic, trace, reason)


def one_by_one(name: str) -> bool:
    """Whether it goes through the examples of a batch one by one."""
    return load(name).MODULES.startswith("B x")


def trace_of(name: str, workload: Workload, faked: Faked | None = None) -> Trace:
    """The trace of one step of ``name``; ``faked``: the workload, where it is there already.

    Of a logical batch it is that of the first two physical batches: the second finds a sum, as all that follow do.

    Raises:
        Refused: as the implementation does.
    """
    if not one_by_one(name):
        return _traced(name, faked or Faked(workload))
    # One and two of them tell what each costs, and memory does not grow.
    one, two = (_traced(name, Faked(replace(workload, batch=n))) for n in (1, 2))
    most = one if workload.physical == 1 else two
    return replace(extrapolated(one, two, workload.physical), peak=most.peak, peak_in=most.peak_in, alive=most.alive)


def _traced(name: str, faked: Faked) -> Trace:
    workload = faked.workload
    with faked.context(name):
        step = prepare(name, faked.model, faked.losses, clip_of(workload))
        whole = summed(faked.model, step, workload, most=2)
        training = None if workload.step == "gradient" else Training(faked.model, whole, workload.optimizer)
        try:
            # The first step makes plan and optimizer state; what is traced is one like all that follow.
            (training or whole)(faked.batch)
            faked.model.zero_grad(set_to_none=True)
            resident = [*faked.tensors, *(training.state if training else [])]
            return traced(partial(training or whole, faked.batch), resident, faked.model)
        finally:
            step.close()
            faked.model.zero_grad(set_to_none=True)
