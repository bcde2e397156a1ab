"""The jobs of a child, done in this process."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dpbench.cards import Card, keep
from dpbench.errors import Refused
from dpbench.job import Job
from dpbench.records import Workload
from dpbench.worker import work
from implementations import bk

MISBEHAVING = Path(__file__).parent / "misbehaving"
MLP = Workload(model="synthetic:mlp(width=8,depth=2)", batch=5)
METRICS = {"peak_live", "peak_process", "resident"}


def told(kind, *implementations, workload=MLP, **options):
    messages = []
    job = Job(kind=kind, workload=workload, implementations=implementations, budget_s=1e-3, **options)
    work(job, messages.append)
    assert messages[-1]["event"] == "done"
    return messages[:-1]


def of(messages, event):
    return [m for m in messages if m["event"] == event]


def misbehaving(name):
    return str(MISBEHAVING / f"{name}.py")


def test_parity_tells_of_each_as_it_goes():
    found = told("parity", "nonprivate", "bk", "opacus")
    assert [m["event"] for m in found] == ["facts"] + ["started", "result"] * 3
    results = of(found, "result")
    assert [r["implementation"] for r in results] == ["nonprivate", "bk", "opacus"]
    assert all(r["parity"]["passed"] and r["coverage"]["trained"] == 144 for r in results)


def test_who_raises_or_refuses_does_not_keep_the_others_from_being_checked():
    found = told("parity", misbehaving("raises"), misbehaving("refuses"), misbehaving("wrong"), "bk")
    ended = {Path(m["implementation"]).stem: m["outcome"] for m in of(found, "ended")}
    assert ended == {"raises": "failed", "refuses": "refused"}
    passed = {Path(m["implementation"]).stem: m["parity"]["passed"] for m in of(found, "result")}
    assert passed == {"wrong": False, "bk": True}


def test_who_breaks_the_device_takes_no_one_along():
    for kind in ("parity", "memory"):
        found = told(kind, "nonprivate", misbehaving("breaks"), "bk")
        assert [m["implementation"] for m in of(found, "result")] == ["nonprivate"]
        (ended,) = of(found, "ended")
        assert Path(ended["implementation"]).stem == "breaks"
        assert ended["outcome"] == "failed"
        assert "illegal memory access" in ended["reason"]
        # The rest of them is asked for again, in another process.
        assert found[-1] is ended


@pytest.mark.parametrize(("precision", "native"), [("bf16", False), ("bf16", True), ("amp-bf16", True)])
def test_parity_is_checked_in_float64_or_in_the_workloads_own_precision(precision, native):
    workload = Workload(model=MLP.model, batch=5, precision=precision)
    (result,) = of(told("parity", "bk", workload=workload, native=native), "result")
    assert result["parity"]["precision"] == (precision if native else "float64")
    assert result["parity"]["passed"]


def test_the_largest_batch_is_traced_for_each_and_a_refusal_is_one():
    workload = Workload(model=MLP.model, batch="max")
    found = told("fit", "nonprivate", misbehaving("refuses"), "opacus", workload=workload, capacity=50_000)
    (refused,) = of(found, "ended")
    assert refused["outcome"] == "refused"
    assert "not to my taste" in refused["reason"]
    plain, stored = of(found, "result")
    assert plain["batch"] > stored["batch"] > 0
    assert all(r["need"] <= r["capacity"] == 50_000 for r in (plain, stored))


def test_memory_comes_under_its_names_with_the_facts_of_the_model():
    facts, started, result = told("memory", "bk")
    assert facts["facts"]["parameters"] == facts["facts"]["trainable"] == 2 * (8 * 8 + 8)
    assert started["implementation"] == "bk"
    assert set(result["memory"]) == METRICS
    assert result["memory"]["resident"] == 4 * 144 + 5 * 8 * 4 + 5 * 8


def test_what_one_needs_does_not_depend_on_who_was_weighed_before():
    wide = Workload(model="synthetic:mlp(width=256,depth=2)", batch=4)
    names = ("nonprivate", "bk", "opacus")
    together = {m["implementation"]: m["memory"] for m in of(told("memory", *names, workload=wide), "result")}
    alone = {n: of(told("memory", n, workload=wide), "result")[0]["memory"] for n in names}
    assert {n: together[n]["peak_live"] for n in names} == {n: alone[n]["peak_live"] for n in names}


def test_instantiating_takes_the_memory_of_the_per_sample_gradients():
    wide = Workload(model="synthetic:mlp(width=64,depth=2)", batch=32)
    peaks = {
        m["implementation"]: m["memory"]["peak_live"]
        for m in of(told("memory", "opacus", "bk", workload=wide), "result")
    }
    assert peaks["opacus"] > 32 * 64 * 64 * 4 > peaks["bk"]


def test_a_round_gives_the_samples_of_each():
    found = told("round", "nonprivate", "bk", seed=3)
    samples = {m["implementation"]: m["seconds"] for m in of(found, "result")}
    assert set(samples) == {"nonprivate", "bk"}
    assert all(len(s) >= 1 and min(s) > 0 for s in samples.values())
    timed = [m["implementation"] for m in of(found, "started")][2:-2]
    assert sorted(timed) == sorted(n for n, s in samples.items() for _ in s)


@pytest.mark.parametrize("at", [0, 1])
def test_who_raises_in_a_round_ends_it(at):
    names = ["bk", "opacus"]
    names.insert(at, misbehaving("raises"))
    found = told("round", *names)
    (ended,) = of(found, "ended")
    assert (Path(ended["implementation"]).stem, ended["outcome"]) == ("raises", "failed")
    assert of(found, "result") == []


def test_a_training_step_is_measured_where_it_is_asked_for():
    train = Workload(model=MLP.model, batch=5, step="train", optimizer="adamw")
    for kind in ("memory", "round"):
        assert len(of(told(kind, "nonprivate", "bk", workload=train), "result")) == 2


def test_a_gradient_that_is_not_finite_is_a_failure(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("""
import torch
def build(workload):
    def losses(model, batch):
        return model(batch).sum(1) * 1e38
    return torch.nn.Linear(2, 2), losses, torch.randn(8, 2)
""")
    (ended,) = of(told("memory", "bk", workload=Workload(model=f"{path}:build", batch=2)), "ended")
    assert ended["outcome"] == "failed"
    assert "not finite: examples 0, 1" in ended["reason"]


def test_what_the_model_raises_is_told_of_nobody():
    (ended,) = told("memory", "bk", workload=Workload(model="synthetic:nlp", batch=5))
    assert (ended["implementation"], ended["outcome"]) == (None, "failed")
    assert "Did you mean mlp" in ended["reason"]


def test_a_check_tells_every_mistake_and_refusals_are_none():
    names = ["synthetic:nlp", "synthetic:cnn", "transformers:gpt3"]
    workloads = [Workload(model=m, batch=1) for m in names]
    workloads += [
        Workload(model=MLP.model, batch=1, device="cuda:99"),
        Workload(model=MLP.model, batch=1, precision="tf32"),
    ]
    found = told("check", workload=MLP, also=tuple(workloads))
    assert [m["event"] for m in found] == ["mistake"] * 4
    reasons = " ".join(m["reason"] for m in found)
    assert all(text in reasons for text in ("'nlp'", "gpt3", "cuda:99", "tf32"))


def test_what_was_imported_for_the_job_is_told():
    messages = []
    work(Job(kind="memory", workload=MLP, implementations=("bk",)), messages.append)
    assert isinstance(messages[-1]["imported"], list)


HOOKED = """
import torch
from dpbench.interface import Output, Supports
TITLE, MODULES, SUPPORTS, PRIVATE = "hooks", "-", Supports(), True
class Step:
    def __init__(self, model, losses, clip):
        self.model, self.losses, self.calls = model, losses, 0
        self.handle = next(model.children()).register_forward_hook(self.count)
    def count(self, *arguments):
        self.calls += 1
    def __call__(self, batch, *, unit=None, mask=None):
        self.calls = 0
        losses = self.losses(self.model, batch)
        assert self.calls == 1
        losses.sum().backward()
        return Output({n: p.grad for n, p in self.model.named_parameters()}, None, losses.detach())
    def close(self):
        self.handle.remove()
prepare = Step
"""


def ready_on_a_shared_model(name):
    from dpbench.built import Built
    from dpbench.tensors import marks
    from dpbench.timing import ready

    built = Built(MLP, 5)
    before = marks(built.model)
    step = ready(name, built, Job(kind="round", workload=MLP))
    assert marks(built.model) == before
    return step, built


def test_an_implementation_that_hooks_the_model_gets_one_of_its_own(tmp_path):
    path = tmp_path / "hooks.py"
    path.write_text(HOOKED)
    step, built = ready_on_a_shared_model(str(path))
    own = step._built
    assert own is not built
    assert all(torch.equal(a, b) for a, b in zip(own.model.parameters(), built.model.parameters(), strict=True))
    step.warm_up()
    step.close()


def test_an_implementation_that_leaves_the_model_alone_shares_it():
    step, built = ready_on_a_shared_model("bk")
    assert step._built is built


def test_an_implementation_that_leaves_a_hook_where_others_are_timed_is_refused(tmp_path):
    path = tmp_path / "hooks.py"
    path.write_text(HOOKED.replace("self.handle.remove()", "pass"))
    with pytest.raises(Refused, match=r"leaves a hook, .* on the model after close\(\).*Undo in close"):
        ready_on_a_shared_model(str(path))


def test_the_source_of_each_is_told_and_of_a_file_as_it_is(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(Path(bk.__file__).read_text())
    messages = told("sources", str(path), "bk", "no such")
    found = {m["implementation"]: m["source"] for m in of(messages, "result")}
    expected = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    assert found == {str(path): expected, "bk": expected}
    assert [m["implementation"] for m in of(messages, "ended")] == ["no such"]


def test_a_trace_tells_costs_by_module_without_computing():
    messages = told("trace", "nonprivate", "opacus")
    found = {m["implementation"]: m["traced"] for m in of(messages, "result")}
    for traced in found.values():
        assert sum(traced["modules"].values()) == traced["flops"]
        assert min(traced["flops"], traced["bytes"], traced["peak"]) > 0
    assert found["opacus"]["peak"] > found["nonprivate"]["peak"]


CPU = Card(
    name="here",
    memory=2**34,
    bandwidth=1e9,
    launch=1e-3,
    peaks={"fp32": 1e9},
    torch_names=(),
    source="made up",
    threads=1,
)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_trace_tells_the_seconds_of_a_machine_that_was_calibrated_with_as_many_threads(
    tmp_path, monkeypatch, threads
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep(CPU)
    before = torch.get_num_threads()
    (result,) = of(told("trace", "bk", workload=replace(MLP, threads=threads)), "result")
    torch.set_num_threads(before)
    traced = result["traced"]
    if threads == 2:
        assert traced["roofline"] is None
        return
    assert traced["roofline"]["card"] == "here"
    assert traced["roofline"]["low"] == pytest.approx(max(traced["flops"] / 1e9, traced["bytes"] / 1e9))


def test_a_trace_tells_the_trained_matrices_of_the_model():
    deeper = Workload(model="synthetic:mlp(width=8,depth=3)", batch=5, seq_len=4, classes=6)
    (facts,) = of(told("trace", "nonprivate", workload=deeper), "facts")
    assert facts["facts"]["layers"] == [("0.weight", 4, 8, 8), ("2.weight", 4, 8, 8), ("4.weight", 4, 8, 6)]
    (facts,) = of(told("trace", "nonprivate", workload=replace(deeper, trainable="pattern:2.*")), "facts")
    assert facts["facts"]["layers"] == [("2.weight", 4, 8, 8)]


def test_of_a_model_that_reads_values_no_layers_are_told(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("""
import torch
def build(workload):
    def losses(model, batch):
        return model(batch).sum(1) * (1 if batch.sum() < 1e9 else 2)
    return torch.nn.Linear(2, 2), losses, torch.randn(8, 2)
""")
    found = told("trace", "nonprivate", workload=Workload(model=f"{path}:build", batch=2))
    assert of(found, "facts")[0]["facts"]["layers"] == []
    assert of(found, "result")[0]["traced"]["on"] == "real"
