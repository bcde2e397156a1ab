"""What one step of a benchmark is: the gradient alone, or all of a training step."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from dpbench.batch import Batch, size
from dpbench.errors import unknown
from dpbench.interface import Output, Step
from dpbench.noise import privatize

OPTIMIZERS: dict[str, Callable[[list[nn.Parameter]], Optimizer]] = {
    "sgd": lambda parameters: SGD(parameters, lr=LEARNING_RATE),
    "adamw": lambda parameters: AdamW(parameters, lr=LEARNING_RATE),
}

LEARNING_RATE = 1e-6
"""Small: a step costs the same at any rate, and the weights stay those whose gradient was checked."""

NOISE_MULTIPLIER = 1.0

SAYS = {
    "gradient": "forward, clip, sum",
    "train": "forward, clip, sum, noise, division by the batch size, optimizer",
}
"""What the header of a run says is timed."""


class Training:
    """The step of an implementation, and then noise, division by B and the optimizer.

    Where the step does not clip, the noise is left out, as non-private training does.
    """

    def __init__(self, model: nn.Module, step: Step, optimizer: str, seed: int = 0) -> None:
        if optimizer not in OPTIMIZERS:
            raise unknown("optimizer", optimizer, OPTIMIZERS)
        parameters = [p for p in model.parameters() if p.requires_grad]
        self._model, self._step = model, step
        self._optimizer = OPTIMIZERS[optimizer](parameters)
        self._generator = torch.Generator(parameters[0].device).manual_seed(seed)

    def __call__(self, batch: Batch) -> Output:
        """One whole training step."""
        out = self._step(batch)
        self.update(out, size(batch))
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
