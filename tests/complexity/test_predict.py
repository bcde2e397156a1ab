"""Predictions: against figures of the paper, and for what refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpbench.built import Built
from dpbench.cards import card
from dpbench.complexity.predict import predict
from dpbench.complexity.tracing import trace_of
from dpbench.errors import Refused
from dpbench.meters import meter_for
from dpbench.models import build
from dpbench.prepared import Prepared
from dpbench.records import Workload
from dpbench.registry import available
from tests.models.tiny import TINY


def totals(workload, names):
    return {p.implementation: p.trace.total for p in predict(workload, names)}


def test_gpt2_small_costs_five_percent_more_and_two_fifths_less_than_with_ghostclip():
    """Bu et al. 2023: BK over non-private 1.05 at T = 100 on GPT-2 small, over GhostClip 0.61."""
    workload = Workload(model="transformers:gpt2", batch=2, seq_len=100, attention="eager")
    flops = totals(workload, ["nonprivate", "bk", "ghostclip"])
    assert flops["bk"] / flops["nonprivate"] == pytest.approx(1.053, abs=5e-4)
    assert flops["bk"] / flops["ghostclip"] == pytest.approx(0.61, abs=5e-3)


def test_large_t_without_other_work_gives_the_leading_ratios():
    """Opacus 8/6 and FastGradClip 10/6 of non-private, but for the first layer and the stored sum."""
    workload = Workload(model="synthetic:transformer(vocab=8)", batch=2, seq_len=64)
    flops = totals(workload, ["nonprivate", "opacus", "fastgradclip"])
    assert flops["opacus"] / flops["nonprivate"] == pytest.approx(8 / 6, rel=0.1)
    assert flops["fastgradclip"] / flops["nonprivate"] == pytest.approx(10 / 6, rel=0.1)


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_one_by_one_is_scaled_from_two_examples(batch):
    workload = Workload(model="synthetic:mlp(width=16,depth=2)", batch=batch)
    flops = totals(workload, ["nonprivate", "tf_privacy"])
    assert flops["tf_privacy"] == flops["nonprivate"]


def test_memory_grows_with_the_batch_and_storing_needs_most():
    small, large = (
        {p.implementation: p.trace.peak for p in predict(Workload(model="synthetic:transformer", batch=b, seq_len=16),
         ["nonprivate", "bk", "opacus"])} for b in (2, 8)
    )  # fmt: skip
    assert large["opacus"] > 3 * small["opacus"]
    assert large["opacus"] > large["bk"] >= large["nonprivate"]


@pytest.mark.parametrize("name", ["nonprivate", "bk", "opacus"])
def test_the_sum_of_the_batches_before_is_alive_beside_the_next(name):
    one = Workload(model="synthetic:transformer", batch=4, seq_len=16)
    alone, two = trace_of(name, one), trace_of(name, replace(one, logical_batch=8))
    # Three of them while they are added, as large as the parameters; norms and losses are small.
    assert two.peak <= max(alone.peak + 4 * build(one).parameters, 12 * build(one).parameters) + 1000
    assert two.peak > alone.peak


@pytest.mark.parametrize("name", ["nonprivate", "opacus"])
def test_two_physical_batches_tell_the_memory_of_all(name):
    workload = Workload(model="synthetic:transformer", batch=4, seq_len=16, logical_batch=22)
    built = Built(workload, 4)
    prepared = Prepared(name, built, workload)
    prepared.warm_up()
    real = prepared.memory(meter_for(built.device))["peak_live"]
    assert trace_of(name, workload).peak == pytest.approx(real, rel=0.02)


def test_what_an_implementation_refuses_is_no_figure(tmp_path):
    path = tmp_path / "refusing.py"
    path.write_text(
        "from dpbench.errors import Refused\nfrom dpbench.interface import Supports\n"
        "TITLE, MODULES, SUPPORTS, PRIVATE = 'r', '1 2a 2b', Supports(), True\n"
        "def prepare(model, losses, clip):\n    raise Refused('not this one')\n"
    )
    (found,) = predict(Workload(model="synthetic:mlp", batch=2), [str(path)])
    assert found.trace is None
    assert found.reason == "not this one"


def implementation(path, modules, body):
    path.write_text(
        "from dpbench.interface import Supports\nfrom dpbench.registry import load\n"
        f"TITLE, MODULES, SUPPORTS, PRIVATE = 'r', {modules!r}, Supports(), True\n"
        "class Step:\n"
        "    def __init__(self, step): self.step = step\n"
        f"    def __call__(self, batch, *, unit=None, mask=None):\n        {body}\n"
        "        return self.step(batch, unit=unit, mask=mask)\n"
        "    def close(self): self.step.close()\n"
        "def prepare(model, losses, clip): return Step(load('bk').prepare(model, losses, clip))\n"
    )
    return str(path)


def test_who_reads_values_is_traced_on_real_tensors(tmp_path):
    path = implementation(tmp_path / "reads.py", "1 2a 3 2b", "batch['x'].sum().item()")
    (found,) = predict(Workload(model="synthetic:mlp", batch=2), [path])
    assert found.on == "real"
    (plain,) = predict(Workload(model="synthetic:mlp", batch=2), ["bk"])
    assert found.trace.total == plain.trace.total


def test_who_declares_no_modules_is_traced_all_the_same(tmp_path):
    path = implementation(tmp_path / "plain.py", "unknown", "pass")
    mine, bk = predict(Workload(model="synthetic:mlp", batch=2), [path, "bk"])
    assert mine.analytic is None
    assert not mine.unexplained
    assert mine.trace.flops == bk.trace.flops


def test_a_model_that_reads_values_is_refused(tmp_path):
    path = tmp_path / "reading.py"
    path.write_text(
        "import torch\n"
        "class Net(torch.nn.Linear):\n"
        "    def forward(self, x):\n"
        "        return super().forward(x if x.sum() > 0 else -x)\n"
        "def build(workload):\n"
        "    losses = lambda m, b: m(b['x']).square().sum(1)\n"
        "    return Net(3, 2), losses, lambda size, seed: {'x': torch.ones(size, 3)}\n"
    )
    with pytest.raises(Refused, match=r"the model .*reading\.py:build reads values"):
        list(predict(Workload(model=f"{path}:build", batch=2), ["bk"]))


def test_what_no_implementation_can_do_is_refused_as_a_step_would():
    with pytest.raises(Refused, match="training mode"):
        list(predict(Workload(model="torchvision:resnet18", batch=2, image_size=32), ["bk"]))


@pytest.mark.parametrize("kind", ["gpt2 lora", "roberta last layer", "vit", "resnet18"])
def test_every_flop_of_every_implementation_is_explained_by_module_and_parameter(kind):
    """``make exactness`` does so for all the networks; what is left are products between activations."""
    for found in predict(TINY[kind], available()):
        assert found.trace is not None
        assert not found.unexplained, (found.implementation, found.unexplained)
        assert all("att" in place.lower() for place in found.trace.others)


def test_the_largest_batch_of_a_card_is_no_larger_than_a_logical_batch():
    workload = Workload(model="synthetic:mlp(width=16,depth=2)", batch="max", logical_batch=24)
    found = list(predict(workload, ["nonprivate", "bk"], card("T4")))
    assert [p.workload.batch for p in found] == [24, 24]
    assert all(p.seconds.expected > 0 for p in found)
