"""One implementation, prepared on a built workload and ready to be measured."""

from __future__ import annotations

from dpbench.built import Built, clip_of
from dpbench.meters import Meter
from dpbench.noise import refuse_non_finite
from dpbench.preparation import prepare
from dpbench.records import Workload
from dpbench.step import Training, summed
from dpbench.tensors import bytes_of


class Prepared:
    """A step of ``name``: the gradient alone or a whole training step, as the workload says."""

    def __init__(self, name: str, built: Built, workload: Workload) -> None:
        self._built = built
        self._step = prepare(name, built.model, built.losses, clip_of(workload))
        self._whole = summed(built.model, self._step, workload)
        self._training: Training | None = None
        if workload.step == "train":
            self._whole = self._training = Training(built.model, self._whole, workload.optimizer, workload.seed)

    @property
    def resident(self) -> int:
        """Bytes that are there before a step: parameters, buffers, batch, and what the optimizer keeps."""
        return bytes_of(self._built.model, self._built.batch, self._training.state if self._training else ())

    def warm_up(self) -> None:
        """One step, whose result has to be finite."""
        refuse_non_finite(self._whole(self._built.batch))
        self._clear()

    def time(self, meter: Meter) -> None:
        """One step on the clock; the gradients of whoever was before are cleared first."""
        self._clear()
        meter.time(lambda: self._whole(self._built.batch))

    def memory(self, meter: Meter) -> dict[str, float]:
        """The memory of one step, above parameters, buffers and batch."""

        def step() -> None:
            self._whole(self._built.batch)
            # At its end, not at its beginning: what a meter saw allocated would be freed in its next run, as if
            # that needed so much less.
            self._clear()

        self._clear()
        return meter.memory(step)

    def once(self) -> None:
        """One step, and before it the gradients of whoever was before cleared."""
        self._clear()
        self._whole(self._built.batch)

    def close(self) -> None:
        """Leave the model as it was."""
        self._step.close()
        self._clear()

    def _clear(self) -> None:
        self._built.model.zero_grad(set_to_none=True)
