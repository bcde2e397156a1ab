"""The uses of parameters in one forward, in order: what complexity formulas speak of."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dpbench.batch import varied
from dpbench.complexity.faked import Faked
from dpbench.facts import Facts
from dpbench.heard import MORE
from dpbench.parameters import trainable
from dpbench.probe import probe
from dpbench.recorder import Recorder
from dpbench.tape import Tape


@dataclass(frozen=True, slots=True)
class Layer:
    """One use of one parameter; it is one of ``uses`` of that parameter."""

    name: str
    facts: Facts
    uses: int


def layers(faked: Faked) -> list[Layer]:
    """All uses of trainable parameters in a forward of ``faked``.

    Raises:
        Refused: as a step would.
    """
    parameters = trainable(faked.model)
    with faked.context(f"the model {faked.workload.model}"), torch.enable_grad():
        plan = probe(faked.model, faked.losses, faked.batch, parameters, varied(faked.batch, MORE + 1))
        tape = Tape(parameters)
        recorder = Recorder(tape, plan, faked.workload.physical, attached=False)
        with recorder:
            losses = faked.losses(faked.model, faked.batch)
        recorder.finish(losses)
        found = list(tape.uses())
        tape.close()
    names = [name for name, _ in found]
    return [Layer(name, facts, names.count(name)) for name, facts in found]
