"""What one step of a benchmark is: of one batch or of several added up, the gradient alone or all of training."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from dpbench.batch import Batch, head
from dpbench.errors import unknown
from dpbench.interface import Output
from dpbench.noise import privatize
from dpbench.records import Workload

Whole = Callable[[Batch], Output]
"""What is measured as one step; its gradient is in every ``p.grad`` as well."""

OPTIMIZERS: dict[str, Callable[[list[nn.Parameter]], Optimizer]] = {
    # foreach is what torch takes on CUDA; said here, a step is the same on every device, and so is its trace.
    "sgd": lambda parameters: SGD(parameters, lr=LEARNING_RATE, foreach=True),
    "adamw": lambda parameters: AdamW(parameters, lr=LEARNING_RATE, foreach=True),
    # One parameter after the other, as torch did before 2.0: no temporaries of all parameters at once.
    "adamw_loop": lambda parameters: AdamW(parameters, lr=LEARNING_RATE, foreach=False),
}

LEARNING_RATE = 1e-6
"""Small: a step costs the same at any rate, and the weights stay those whose gradient was checked."""

NOISE_MULTIPLIER = 1.0

SAYS = {
    "gradient": "forward, clip, sum",
    "train": "forward, clip, sum, noise, division by the batch size, optimizer",
}
"""What the header of a run says is timed."""


def sizes(workload: Workload) -> list[int]:
    """The physical batches of one step."""
    physical = workload.physical
    whole, rest = divmod(workload.logical_batch or physical, physical)
    return [physical] * whole + ([rest] if rest else [])


def summed(model: nn.Module, step: Whole, workload: Workload, most: int | None = None) -> Whole:
    """The step of a logical batch: its physical batches, or the first ``most``, one after the other, added up.

    It is given one physical batch, whose examples it takes again and again.
    """
    if workload.logical_batch is None:
        return step
    first, *others = sizes(workload)[:most]

    def added(batch: Batch) -> Output:
        out = step(head(batch, first))
        for count in others:
            out = out + step(head(batch, count))
            # In place of the last batch's own gradient, which would stay alive through the next.
            for name, parameter in model.named_parameters():
                parameter.grad = out.grads.get(name)
        return out

    return added


class Training:
    """The step of an implementation, and then noise, division by the batch size and the optimizer.

    Where the step does not clip, the noise is left out, as non-private training does.
    """

    def __init__(self, model: nn.Module, step: Whole, optimizer: str, seed: int = 0) -> None:
        if optimizer not in OPTIMIZERS:
            raise unknown("optimizer", optimizer, OPTIMIZERS)
        parameters = [p for p in model.parameters() if p.requires_grad]
        self._model, self._step = model, step
        self._optimizer = OPTIMIZERS[optimizer](parameters)
        self._generator = torch.Generator(parameters[0].device).manual_seed(seed)

    def __call__(self, batch: Batch) -> Output:
        """One whole training step."""
        out = self._step(batch)
        self.update(out, len(out.losses))
        return out

    def update(self, out: Output, batch: int) -> None:
        """Noise, division by the number of examples, and the optimizer."""
        privatize(self._model, out, NOISE_MULTIPLIER if out.clip else 0.0, batch, self._generator)
        self._optimizer.step()

    @property
    def state(self) -> list[Tensor]:
        """The tensors that the optimizer keeps between steps."""
        values = [value for kept in self._optimizer.state.values() for value in kept.values()]
        return [value for value in values if isinstance(value, Tensor)]
