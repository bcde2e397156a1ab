"""Traces without memory, of real tensors, and of examples one by one: the same costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from dpbench.complexity import tracing
from dpbench.complexity.faked import Faked, ReadsValues
from dpbench.complexity.layers import layers
from dpbench.complexity.predict import predict
from dpbench.complexity.tracing import SMALL, either, one_by_one, trace_of
from dpbench.errors import DpbenchError, Refused
from dpbench.records import Workload
from dpbench.registry import available
from tests.models.tiny import GPT2, TINY, VIT

MLP = Workload(model="synthetic:mlp(width=8,depth=2)", batch=3, seq_len=4)
CNN = Workload(model="synthetic:cnn(channels=4,depth=1)", batch=3, image_size=6)
BATCHED = [name for name in available() if not one_by_one(name)]


def on_real(name, workload):
    trace, on = either(name, workload, Faked(workload), "real")
    assert on == "real"
    return trace


def amounts(trace):
    """Calls, FLOPs and bytes by everything else that is known of an operation."""
    found = Counter()
    for o in trace.operations:
        key = (o.name, o.module, o.parameter, o.within, o.dtype)
        for what in ("count", "flops", "bytes"):
            found[key, what] += getattr(o, what)
    return +found


def reading(path, modules, name):
    """An implementation that reads a value, and does what ``name`` does."""
    path.write_text(
        "from dpbench.interface import Supports\nfrom dpbench.registry import load\n"
        f"TITLE, MODULES, SUPPORTS, PRIVATE = 'r', {modules!r}, Supports(), True\n"
        "class Step:\n"
        "    def __init__(self, step): self.step = step\n"
        "    def __call__(self, batch, *, unit=None, mask=None):\n        batch['x'].sum().item()\n"
        "        return self.step(batch, unit=unit, mask=mask)\n"
        "    def close(self): self.step.close()\n"
        f"def prepare(model, losses, clip): return Step(load({name!r}).prepare(model, losses, clip))\n"
    )
    return str(path)


def test_one_alone_goes_through_examples_one_by_one():
    assert set(available()) - set(BATCHED) == {"tf_privacy"}


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("workload", [MLP, CNN], ids=["mlp", "cnn"])
def test_real_and_fake_traces_of_a_small_batch_are_the_same(workload, name):
    fake, real = trace_of(name, workload), on_real(name, workload)
    assert Counter(real.operations) == Counter(fake.operations)
    assert (real.peak, real.peak_in, real.alive, real.resident) == (fake.peak, fake.peak_in, fake.alive, fake.resident)


@pytest.mark.parametrize("kind", ["gpt2 lora", "resnet18"])
def test_so_they_are_of_real_architectures(kind):
    if "lora" in kind:
        pytest.importorskip("peft")
    workload = replace(TINY[kind], batch=2)
    fake, real = trace_of("bk", workload), on_real("bk", workload)
    assert amounts(real) == amounts(fake)
    assert (real.peak, real.resident) == (fake.peak, fake.resident)


@pytest.mark.parametrize("name", available())
@pytest.mark.parametrize("workload", [replace(MLP, batch=7), replace(CNN, batch=9)], ids=["mlp", "cnn"])
def test_what_is_extrapolated_from_small_batches_is_what_a_trace_finds(workload, name):
    fake, real = trace_of(name, workload), on_real(name, workload)
    assert amounts(real) == amounts(fake)
    assert real.resident == fake.resident


@pytest.mark.parametrize("name", ["bk", "opacus", "vmap"])
def test_the_peak_is_extrapolated_too_where_the_batch_makes_it(name):
    workload = replace(MLP, batch=50)
    fake, real = trace_of(name, workload), on_real(name, workload)
    assert (real.peak, real.peak_in, real.alive) == (fake.peak, fake.peak_in, fake.alive)


WHERE_GRADIENTS_ARE_LARGE = Workload(model="synthetic:transformer(width=16,heads=2,vocab=50)", batch=50, seq_len=4)


def test_the_peak_is_extrapolated_where_gradients_make_it_at_first():
    fake, real = (trace("nonprivate", WHERE_GRADIENTS_ARE_LARGE) for trace in (trace_of, on_real))
    assert (real.peak, real.peak_in) == (fake.peak, fake.peak_in)


@pytest.mark.parametrize("name", BATCHED)
def test_no_extrapolated_peak_lies_above_the_traced_one(name):
    """It may lie below, where another moment of the same module makes the peak of small batches, as ghostclip's."""
    fake, real = trace_of(name, WHERE_GRADIENTS_ARE_LARGE), on_real(name, WHERE_GRADIENTS_ARE_LARGE)
    assert 0.95 * fake.peak <= real.peak <= fake.peak


@pytest.mark.parametrize("batch", [1, *SMALL, 10])
def test_large_batches_alone_are_extrapolated(batch, monkeypatch):
    made = []
    whole = tracing.Real
    monkeypatch.setattr(tracing, "Real", lambda w, n: made.append(w.batch) or whole(w, n))
    on_real("bk", replace(MLP, batch=batch))
    assert made == ([batch] if batch <= max(SMALL) else [*SMALL])


@pytest.mark.parametrize("batch", [1, 2, 3, 8])
def test_one_by_one_takes_the_work_of_every_example_and_the_memory_of_few(batch):
    workload = replace(MLP, batch=batch)
    fake, real = trace_of("tf_privacy", workload), on_real("tf_privacy", workload)
    plain = trace_of("nonprivate", workload)
    assert fake.total == real.total == plain.total
    assert fake.peak == trace_of("tf_privacy", replace(MLP, batch=min(batch, 2))).peak
    assert abs(real.peak - fake.peak) <= 100, "norms and losses alone grow with the batch"
    assert fake.resident == real.resident == plain.resident


def test_the_device_and_precision_of_real_tensors_are_those_of_a_cpu():
    there = replace(MLP, device="cuda", precision="tf32")
    assert amounts(on_real("bk", there)) == amounts(on_real("bk", MLP))


@pytest.mark.parametrize("name", ["nonprivate", "bk", "opacus"])
def test_real_and_fake_traces_agree_under_autocast(name):
    workload = replace(MLP, precision="amp-bf16")
    fake, real = trace_of(name, workload), on_real(name, workload)
    assert amounts(fake) == amounts(real)
    assert fake.peak == real.peak


@pytest.mark.parametrize("name", ["nonprivate", "bk"])
def test_real_and_fake_traces_agree_in_bfloat16(name):
    workload = Workload(model="synthetic:mlp(width=23,depth=3)", batch=3, precision="bf16")
    fake, real = trace_of(name, workload), on_real(name, workload)
    assert amounts(fake) == amounts(real)
    assert fake.peak == real.peak


@pytest.mark.parametrize("batch", [2, 7])
@pytest.mark.parametrize(("modules", "name"), [("1 2a 3 2b", "bk"), ("B x (1 2a 2b)", "tf_privacy")])
def test_who_reads_values_is_traced_on_real_tensors_and_it_is_said(tmp_path, modules, name, batch):
    workload = replace(MLP, batch=batch)
    path = reading(tmp_path / "reads.py", modules, name)
    with pytest.raises(ReadsValues, match=r"reads\.py reads values of tensors"):
        trace_of(path, workload)
    trace, on = either(path, workload, Faked(workload), "trace")
    assert on == "real"
    assert trace.flops == trace_of(name, workload).flops


def test_who_reads_none_is_not():
    assert either("bk", MLP, Faked(MLP), "trace") == (trace_of("bk", MLP), "trace")


def test_a_trace_that_was_given_up_leaves_the_workload_as_it_was(tmp_path):
    task = Faked(MLP)
    either(reading(tmp_path / "reads.py", "1 2a 3 2b", "bk"), MLP, task, "trace")
    assert all(p.grad is None for p in task.model.parameters())
    assert trace_of("bk", MLP, task) == trace_of("bk", MLP)


def test_real_tensors_can_be_asked_for():
    plain, bk = predict(MLP, ["nonprivate", "bk"], on="real")
    assert (plain.on, bk.on) == ("real", "real")
    assert [p.trace.total for p in (plain, bk)] == [p.trace.total for p in predict(MLP, ["nonprivate", "bk"])]


def test_another_way_of_tracing_is_unknown():
    with pytest.raises(DpbenchError, match="unknown way of tracing 'rael'. Did you mean real"):
        next(predict(MLP, ["bk"], on="rael"))


def test_a_refusal_is_none_to_be_tried_again_on_real_tensors(tmp_path, monkeypatch):
    path = tmp_path / "refusing.py"
    path.write_text(
        "from dpbench.errors import Refused\nfrom dpbench.interface import Supports\n"
        "TITLE, MODULES, SUPPORTS, PRIVATE = 'r', '1 2a 2b', Supports(), True\n"
        "def prepare(model, losses, clip): raise Refused('not this one')\n"
    )
    monkeypatch.setattr(tracing, "Real", lambda *_: pytest.fail("it is tried again"))
    with pytest.raises(Refused, match="not this one"):
        either(str(path), MLP, Faked(MLP), "trace")


DEEP = {
    "gpt2": Workload(model=f"transformers:gpt2({GPT2})", batch=3, seq_len=16, layers=8),
    "lora": Workload(
        model=f"transformers:gpt2({GPT2})", batch=3, seq_len=16, layers=8, trainable="lora:r=2,targets=c_attn"
    ),
    "vit": Workload(model=f"timm:vit_tiny_patch16_224({VIT},patch_size=4,depth=8)", batch=3, classes=10),
}
ATTACHED = ["nonprivate", "fastgradclip", "ghostclip", "mixghostclip"]


@pytest.mark.parametrize("name", ATTACHED)
@pytest.mark.parametrize("model", DEEP)
def test_checkpointing_needs_less_memory_for_a_deep_model_and_computes_the_forward_again(model, name):
    plain, again = trace_of(name, DEEP[model]), trace_of(name, replace(DEEP[model], checkpointing=True))
    assert again.peak < 0.75 * plain.peak
    assert again.resident == plain.resident
    more = Counter(again.flops) - Counter(plain.flops)
    assert set(more) == {"1"}
    assert not Counter(plain.flops) - Counter(again.flops)
    backwards = 1 if name in ("nonprivate",) else 2
    assert 0 < more["1"] <= backwards * plain.flops["1"]


@pytest.mark.parametrize("name", [*ATTACHED, "opacus"])
@pytest.mark.parametrize("trainable", ["all", "lora:r=2,targets=c_attn"])
def test_fewer_logits_at_a_time_need_less_memory_where_there_are_many(name, trainable):
    model = f"transformers:gpt2({GPT2.replace('vocab_size=60', 'vocab_size=3000')})"
    whole = Workload(model=model, batch=3, seq_len=16, layers=1, trainable=trainable)
    peaks = [trace_of(name, replace(whole, loss_chunk=n)).peak for n in (None, 4, 1)]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[1] < 0.85 * peaks[0]


@pytest.mark.parametrize("axes", [{"checkpointing": True}, {"loss_chunk": 3}], ids=str)
@pytest.mark.parametrize("name", ["nonprivate", "opacus", "ghostclip"])
def test_real_and_fake_traces_agree_where_activations_are_computed_again(name, axes):
    workload = replace(TINY["gpt2"], batch=3, **axes)
    fake, real = trace_of(name, workload), on_real(name, workload)
    assert fake.flops == real.flops
    assert fake.peak == real.peak


def test_detached_weights_are_refused_in_a_trace_too():
    with pytest.raises(Refused, match="recomputes the forward that reads transformer.wte.weight"):
        trace_of("bk", replace(TINY["gpt2"], loss_chunk=3))


def test_uses_are_told_as_without():
    plain, again = (layers(Faked(replace(TINY["gpt2"], checkpointing=value))) for value in (False, True))
    assert again == plain
    pieces = layers(Faked(replace(TINY["gpt2"], loss_chunk=3)))
    assert sorted(use.facts.T for use in pieces if use.name == "transformer.wte.weight") == [2, 3, 3, 8]
