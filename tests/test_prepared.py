import pytest

from dpbench.built import Built
from dpbench.prepared import Prepared
from dpbench.records import Workload

GRADIENT = Workload(model="synthetic:mlp(width=8,depth=2)", batch=4)
TRAIN = Workload(model=GRADIENT.model, batch=4, step="train")


class FakeMeter:
    """Runs what it is given and notes whether a gradient of an earlier step was still there."""

    def __init__(self, model):
        self.model, self.left, self.after = model, [], []

    def time(self, action):
        self.left.append(any(p.grad is not None for p in self.model.parameters()))
        action()
        self.after.append(all(p.grad is not None for p in self.model.parameters()))

    def seconds(self):
        return [1.0 for _ in self.left]

    def memory(self, action):
        self.time(action)
        self.time(action)
        return {"peak_live": 3.0}


LOGICAL = Workload(model=GRADIENT.model, batch=4, logical_batch=10, step="train")


@pytest.mark.parametrize("workload", [GRADIENT, TRAIN, LOGICAL], ids=["gradient", "train", "logical"])
@pytest.mark.parametrize("name", ["nonprivate", "bk", "tf_privacy"])
def test_every_step_on_the_clock_starts_without_gradients_and_ends_with_them(name, workload):
    built = Built(workload, 4)
    prepared, meter = Prepared(name, built, workload), FakeMeter(built.model)
    prepared.warm_up()
    for _ in range(2):
        prepared.time(meter)
    assert (meter.left, meter.after) == ([False, False], [True, True])
    prepared.close()
    assert all(p.grad is None for p in built.model.parameters())


def test_the_memory_is_what_the_meter_says_of_steps_that_begin_without_gradients():
    built = Built(GRADIENT, 4)
    meter = FakeMeter(built.model)
    assert Prepared("bk", built, GRADIENT).memory(meter) == {"peak_live": 3.0}
    assert meter.left == [False, False]


def test_only_a_training_step_moves_the_weights():
    for workload, moves in ((GRADIENT, False), (TRAIN, True)):
        built = Built(workload, 4)
        before = [p.clone() for p in built.model.parameters()]
        Prepared("bk", built, workload).warm_up()
        assert any((a != b).any() for a, b in zip(before, built.model.parameters(), strict=True)) == moves
