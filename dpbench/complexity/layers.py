"""The uses of parameters in one forward, in order: what complexity formulas speak of."""

from __future__ import annotations

import torch

from dpbench.batch import varied
from dpbench.complexity.faked import Faked
from dpbench.complexity.frozen import FrozenUses
from dpbench.complexity.modules import Layer, decisions_of
from dpbench.errors import DpbenchError
from dpbench.heard import MORE
from dpbench.parameters import trainable
from dpbench.probe import probe
from dpbench.recorder import Recorder
from dpbench.rewriting import rewritten
from dpbench.tape import Tape


def layers(faked: Faked) -> list[Layer]:
    """All uses of trainable parameters in a forward of ``faked``, then those of frozen weights.

    Raises:
        Refused: as a step would.
    """
    parameters = trainable(faked.model)
    with faked.context(f"the model {faked.workload.model}"), torch.enable_grad():
        plan = probe(faked.model, faked.losses, faked.batch, parameters, varied(faked.batch, MORE + 1))
        tape = Tape(parameters)
        # Attached, as detached weights are refused under checkpointing; what is used is the same.
        recorder = Recorder(tape, plan, faked.workload.physical, attached=True)
        frozen = FrozenUses(faked.model, faked.workload.physical)
        with frozen, recorder:
            losses = rewritten(faked.losses)(faked.model, faked.batch)
        recorder.finish(losses)
        found = list(tape.uses())
        tape.close()
    names = [name for name, _ in found]
    trained = [Layer(name, facts, names.count(name), parameters[name].numel()) for name, facts in found]
    return [*trained, *frozen.layers]


def trained(faked: Faked) -> list[tuple[str, int, int, int]]:
    """Name, T, d, p of every trained matrix in the order of the forward; none where its uses cannot be told."""
    try:
        decided = decisions_of(layers(faked))
    except DpbenchError:
        # Whoever is traced says so by name, or takes another way.
        return []
    return list({layer.name: (layer.name, whole.T, whole.d, whole.p) for layer, whole in decided}.values())
