"""The conformance kit's cases as models: theirs in model, losses and rows, and refused in their own words."""

from __future__ import annotations

import pytest
import torch
from torch.utils import _pytree as pytree

from dpbench import suite
from dpbench.batch import size, take
from dpbench.built import Built, clip_of
from dpbench.cases import CASES
from dpbench.complexity.faked import Faked
from dpbench.complexity.layers import layers
from dpbench.complexity.predict import predict
from dpbench.errors import DpbenchError, MissingExtra, Refused
from dpbench.models import available, build, cases
from dpbench.parity import Oracle
from dpbench.records import Workload
from dpbench.sweep import cells_of

EMPTY = "batch/empty"


def workload(name, **axes):
    return Workload(model=f"case:{name}", batch=4, **axes)


@pytest.mark.parametrize("name", CASES)
def test_every_case_is_a_model_or_refused_with_its_reason(name):
    case = CASES[name]
    if case.refused or name == EMPTY:
        with pytest.raises(Refused, match=f"case:{name} .* See: dpbench verify --case {name}") as refused:
            build(workload(name))
        assert case.refused in str(refused.value)
        return
    if case.needs:
        pytest.importorskip(case.needs)
    task = build(workload(name))
    for count in (1, 7):
        batch = task.batches(count, 0)
        assert size(batch) == count
        assert task.losses(task.model, batch).shape == (count,)
    assert case.reason in task.source


def test_a_larger_batch_has_the_rows_of_the_case_again_and_again():
    rows = next(call.batch for call in CASES["linear/three-axes"].build().calls)
    B = size(rows)
    found = build(workload("linear/three-axes")).batches(2 * B + 1, 7)
    expected = take(rows, torch.tensor([*range(B), *range(B), 0]))
    pairs = zip(pytree.tree_leaves(found), pytree.tree_leaves(expected), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_a_case_that_begins_with_an_empty_batch_has_the_rows_of_its_next():
    first, second, *_ = CASES["batch/empty-at-first"].build().calls
    assert size(first.batch) == 0
    found = build(workload("batch/empty-at-first")).batches(1, 0)
    assert torch.equal(found["x"], second.batch["x"][:1])


@pytest.mark.parametrize(
    "name", ["sharing/tied-head", "convolution/groups", "attention/module-with-padding", "numerics/autocast-bfloat16"]
)
def test_gradients_are_right(name):
    built = Built(workload(name), 3)
    oracle = Oracle(built.model, built.losses, built.batch, clip_of(workload(name)))
    assert all(oracle.check(one).parity.passed for one in ("bk", "opacus", "vmap"))


def test_a_gradient_of_a_gradient_is_checked_where_it_can_be():
    built = Built(workload("autograd/gradient-of-a-gradient"), 3)
    oracle = Oracle(built.model, built.losses, built.batch, clip_of(workload("any")))
    assert oracle.check("tf_privacy").parity.passed
    with pytest.raises(Refused, match="the losses contain a gradient"):
        oracle.check("bk")


def test_it_is_traced_without_memory_and_ties_stay():
    found = layers(Faked(workload("sharing/tied-head")))
    first = found[0].facts
    assert (found[0].name, found[0].uses, first.T, first.d, first.p) == ("e.weight", 2, 4, 9, 5)
    (one,), (two,) = (predict(Workload(model="case:sharing/tied-head", batch=b), ["bk"]) for b in (4, 8))
    assert two.trace.total == 2 * one.trace.total > 0


def test_cases_are_models_of_a_suite_and_shared_sizes_pass_them_by(tmp_path):
    path = tmp_path / "kit.toml"
    path.write_text("""
title = "Kit"
[axes]
implementation = ["nonprivate", "bk"]
batch = [4, 8]
seq_len = 5
image_size = 6
[[models]]
model = ["case:linear/three-axes", "case:sharing/tied-head", "layer:linear(d=6)", "layer:conv2d"]
""")
    workloads = {c.workload for c in cells_of(suite.load(str(path)))}
    sizes = {w.model: (w.seq_len, w.image_size) for w in workloads}
    assert len(workloads) == 8
    assert sizes == {
        "case:linear/three-axes": (None, None),
        "case:sharing/tied-head": (None, None),
        "layer:linear(d=6)": (5, None),
        "layer:conv2d": (None, 6),
    }
    for w in workloads:
        build(w)


def test_one_that_needs_a_package_says_so(monkeypatch):
    needy = next(name for name, case in CASES.items() if case.needs)
    monkeypatch.setattr(cases, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=f"{CASES[needy].needs} is not installed"):
        build(workload(needy))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            "case:sharing/tied-haed",
            "unknown case 'sharing/tied-haed'. Did you mean sharing/tied-head.*dpbench list cases",
        ),
        (
            "case:sharing/tied-head(d=3)",
            "case:sharing/tied-head is given d=3; a case has no options, leave the brackets",
        ),
        (
            "case:batch/empty",
            "case:batch/empty is about an empty batch and has no examples. See: dpbench verify --case",
        ),
        ("case:", "names no model; expected case:name"),
    ],
)
def test_a_mistake_is_said(model, message):
    with pytest.raises(DpbenchError, match=message):
        build(Workload(model=model, batch=1))


@pytest.mark.parametrize("axis", ["seq_len", "image_size", "layers", "classes", "attention", "loss_chunk"])
def test_an_axis_of_networks_is_refused(axis):
    with pytest.raises(Refused, match=f"case:linear/three-axes has no axis {axis}"):
        build(workload("linear/three-axes", **{axis: "sdpa" if axis == "attention" else 3}))


def test_they_are_listed():
    assert str(len(CASES)) in available()["case:NAME"]
