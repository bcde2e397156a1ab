"""A layer alone: sizes as asked for, gradients of its own and to its input, and next to nothing beside it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dpbench import suite
from dpbench.built import Built, clip_of
from dpbench.clipping import Clip
from dpbench.complexity.faked import Faked
from dpbench.complexity.layers import layers
from dpbench.complexity.predict import predict
from dpbench.errors import DpbenchError, Refused
from dpbench.models import available, build
from dpbench.models.layers import AXES, KINDS, options_of
from dpbench.parity import Oracle
from dpbench.records import Workload
from dpbench.reference import per_example
from dpbench.sweep import cells_of

SMALL = {
    "linear": "d=6,p=5,T=3",
    "conv1d": "d=4,p=6,groups=2,T=7",
    "conv2d": "d=4,p=6,px=5,stride=2",
    "conv3d": "d=2,p=3,T=3,px=4",
    "conv_transpose2d": "d=2,p=3,px=3",
    "layernorm": "d=6,T=3",
    "groupnorm": "d=6,groups=3,px=3",
    "instancenorm": "d=4,px=3",
    "embedding": "V=1e1,d=3,T=4",
    "embedding_bag": "V=9,d=3,T=4",
    "mha": "d=6,heads=2,T=3,S=4",
    "rnn": "d=3,p=4,T=3",
    "gru": "d=3,p=4,T=3,bidirectional=true",
    "lstm": "d=3,p=4,T=3,layers=2",
}
OUTPUTS = {
    "linear": (3, 5),
    "conv1d": (6, 7),
    "conv2d": (6, 3, 3),
    "conv3d": (3, 3, 4, 4),
    "conv_transpose2d": (3, 6, 6),
    "layernorm": (3, 6),
    "groupnorm": (6, 3, 3),
    "instancenorm": (4, 3, 3),
    "embedding": (4, 3),
    "embedding_bag": (3,),
    "mha": (3, 6),
    "rnn": (3, 4),
    "gru": (3, 8),
    "lstm": (3, 4),
}
MODELS = {name: f"layer:{name}({options})" for name, options in SMALL.items()}
BOTH = [*MODELS.values(), *(m.replace(")", ",first=true)") for n, m in MODELS.items() if "embedding" not in n)]


def workload(model, **axes):
    return Workload(model=model, batch=4, **axes)


def test_every_layer_is_looked_at_here():
    assert set(SMALL) == set(OUTPUTS) == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_every_layer_has_a_size_without_options(name):
    faked = Faked(workload(f"layer:{name}"))
    with faked.context("it"):
        assert faked.losses(faked.model, faked.batch).shape == (4,)


@pytest.mark.parametrize("name", KINDS)
def test_the_loss_is_a_weighted_sum_of_the_outputs_of_the_shifted_inputs(name):
    task = build(workload(MODELS[name]))
    batch = task.batches(3, 0)
    model, y = task.model, batch["y"]
    xs = batch["x"]
    if "embedding" not in name:
        xs = [torch.stack([x_i + model.before.weight.item() * y_i for x_i, y_i in zip(x, y, strict=True)]) for x in xs]
    if name == "mha":
        xs = [xs[0], xs[1], xs[1]]
    out = model.layer(*xs)
    out = out[0] if isinstance(out, tuple) else out
    assert out.shape == (3, *OUTPUTS[name])
    expected = [float(y_i) * float((o.flatten() * model.direction).sum()) for y_i, o in zip(y, out, strict=True)]
    assert task.losses(model, batch).tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("model", BOTH)
def test_gradients_are_right_and_all_are_there(model):
    asked = workload(model)
    built = Built(asked, 3)
    oracle = Oracle(built.model, built.losses, built.batch, clip_of(asked))
    for name in ("bk", "opacus", "vmap"):
        checked = oracle.check(name)
        assert checked.parity.passed, (name, checked.parity)
        assert checked.coverage.trained == checked.coverage.asked > 0
        assert "generic" not in checked.coverage.norms


@pytest.mark.parametrize("name", KINDS)
def test_no_two_examples_have_the_same_norm(name):
    """Or all of them would be clipped, or none, when R is the median."""
    built = Built(workload(MODELS[name]), 3)
    norms = per_example(built.model, built.losses, built.batch, Clip()).norms
    assert norms is not None
    assert len(set(norms.tolist())) == 3


@pytest.mark.parametrize("precision", ["bf16", "amp-bf16"])
@pytest.mark.parametrize("name", ["linear", "layernorm", "embedding", "mha"])
def test_other_precisions_run(name, precision):
    built = Built(workload(MODELS[name], precision=precision), 3)
    assert built.losses(built.model, built.batch).isfinite().all()


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("linear(d=768,p=3072,T=128)", {"layer.weight": ("linear", 128, 768, 3072, 1, False)}),
        ("linear(d=768,p=3072,first=true)", {"layer.weight": ("linear", 1, 768, 3072, 1, True)}),
        # 3 x 3 kernels on 64 channels; stride 2 halves 32 pixels.
        ("conv2d(d=64,p=64,stride=2,px=32)", {"layer.weight": ("convolution", 16 * 16, 64 * 9, 64, 1, False)}),
        ("conv2d(d=64,p=32,groups=4,px=8)", {"layer.weight": ("convolution", 64, 16 * 9, 32, 4, False)}),
        ("conv1d(d=4,p=6,T=10,kernel=3,padding=0)", {"layer.weight": ("convolution", 8, 12, 6, 1, False)}),
        ("conv3d(d=2,p=3,T=4,px=5)", {"layer.weight": ("convolution", 100, 2 * 27, 3, 1, False)}),
        ("embedding(V=1e6,d=5)", {"layer.weight": ("embedding", 1, 1_000_000, 5, 1, True)}),
        ("embedding(V=30,d=5,T=7)", {"layer.weight": ("embedding", 7, 30, 5, 1, True)}),
    ],
)
def test_sizes_are_those_that_dpbench_layers_tells(model, expected):
    found = [layer for layer in layers(Faked(workload(f"layer:{model}"))) if layer.facts.matrix]
    sizes = {
        layer.name: (f.rule, f.T, f.d, f.p, f.groups, f.first)
        for layer in found
        if (f := layer.facts) and layer.name != "before.weight"
    }
    assert sizes == expected


def test_only_the_layer_has_arithmetic():
    """Forward, output and parameter gradient, 2BTpd each, and as much for ghost norms as their formula says."""
    B, T, d, p = 4, 16, 24, 32
    one = 2 * B * T * d * p
    inside, first = (
        {found.implementation: found.trace.total for found in predict(workload(model), ["nonprivate", "bk", "vmap"])}
        for model in (f"layer:linear(d={d},p={p},T={T})", f"layer:linear(d={d},p={p},T={T},first=true)")
    )
    shift = 2 * B
    assert first["nonprivate"] == 2 * one
    assert inside["nonprivate"] == 3 * one + 2 * shift
    # And the clipped sum of what is stored of each example: of bk the bias alone.
    assert first["bk"] - 2 * one == 2 * B * T**2 * (d + p) + 2 * B * p
    assert first["vmap"] - 2 * one == 2 * B * (d * p + p)


def test_a_wide_embedding_needs_no_row_of_it_for_each_example():
    B, V, d = 64, 1_000_000, 5
    (found,) = predict(Workload(model=f"layer:embedding(V=1e6,d={d})", batch=B), ["bk"])
    assert 4 * V * d <= found.trace.peak < 2 * 4 * V * d


def test_without_the_shift_the_layer_is_all_that_is_trained():
    assert [n for n, _ in build(workload(MODELS["linear"])).model.named_parameters()] == [
        "before.weight",
        "layer.weight",
        "layer.bias",
    ]
    for model in ("layer:linear(first=true)", "layer:embedding"):
        assert all(n.startswith("layer.") for n, _ in build(workload(model)).model.named_parameters())


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("axis", AXES)
def test_an_axis_is_the_option_that_means_the_same_or_refused(name, axis):
    option = AXES[axis]
    if option not in options_of(name):
        with pytest.raises(Refused, match=f"layer:{name} has no axis {axis}"):
            build(workload(f"layer:{name}", **{axis: 6}))
        return
    by_axis, by_option = build(workload(f"layer:{name}", **{axis: 6})), build(workload(f"layer:{name}({option}=6)"))
    assert [x.shape for x in by_axis.batches(2, 0)["x"]] == [x.shape for x in by_option.batches(2, 0)["x"]]
    assert by_axis.parameters == by_option.parameters
    build(workload(f"layer:{name}({option}=6e0)", **{axis: 6}))
    with pytest.raises(DpbenchError, match=f"is given {option}=5 and {axis}=6, which mean the same; leave one out"):
        build(workload(f"layer:{name}({option}=5)", **{axis: 6}))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("axis", ["seq_len", "image_size"])
def test_a_shared_axis_of_a_suite_reaches_the_layers_that_have_it(name, axis):
    for model in (f"layer:{name}", f"layer:{name}(first=true)"):
        assert suite.applies(axis, model) == (AXES[axis] in options_of(name))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("layer:linaer", r"unknown layer 'linaer'. Did you mean linear"),
        ("layer:conv2d(kernal=3)", r"unknown option of layer:conv2d 'kernal'. Did you mean kernel"),
        ("layer:embedding(first=true)", r"unknown option of layer:embedding 'first'. Known: T, V, d"),
        ("layer:linear(d=0)", "layer:linear is given d=0; expected a whole number, 1 or more"),
        ("layer:linear(d=4.5)", "layer:linear is given d=4.5; expected a whole number, 1 or more"),
        ("layer:linear(d=1e400)", "layer:linear is given d=inf; expected a whole number"),
        ("layer:conv2d(padding=-1)", "layer:conv2d is given padding=-1; expected a whole number, 0 or more"),
        ("layer:linear(bias=1)", "layer:linear is given bias=1; expected true or false"),
        ("layer:embedding_bag(mode=3)", "layer:embedding_bag is given mode=3; expected a word"),
        (
            "layer:embedding_bag(mode=maen)",
            "layer:embedding_bag cannot be built with V=20000,d=100,T=16,mode=maen: mode",
        ),
        ("layer:mha(heads=3)", "layer:mha cannot be built with d=100,heads=3,T=64,S=none,.*: embed_dim must be div"),
        ("layer:conv2d(kernel=40,padding=0)", "layer:conv2d cannot be built with .*kernel=40.*: .*Kernel size"),
        ("layer:groupnorm(groups=7)", "layer:groupnorm cannot be built with d=256,groups=7.*divisible"),
    ],
)
def test_a_mistake_is_said(model, message):
    with pytest.raises(DpbenchError, match=message):
        build(workload(model))


@pytest.mark.parametrize("axis", ["classes", "attention", "loss_chunk"])
def test_axes_of_networks_are_refused(axis):
    with pytest.raises(Refused, match=f"layer:linear has no axis {axis}"):
        build(workload("layer:linear", **{axis: "eager" if axis == "attention" else 3}))


def test_padding_may_be_none_and_lengths_may_be_left_out():
    build(workload("layer:conv2d(padding=0)"))
    assert build(workload("layer:linear(d=3,T=none)")).batches(2, 0)["x"][0].shape == (2, 3)


def test_layers_are_listed_with_their_options():
    listed = available()
    assert {name for name in listed if name.startswith("layer:")} == {f"layer:{name}" for name in KINDS}
    assert listed["layer:linear"].endswith(" d=512,p=512,T=none,bias=true,first=false")
    for name in KINDS:
        build(workload(f"layer:{name}({listed[f'layer:{name}'].rpartition(' ')[2]})"))


def test_weights_and_batches_are_seeded():
    first, again, other = (build(workload("layer:lstm(T=3)", seed=seed)) for seed in (0, 0, 1))
    flat = [nn.utils.parameters_to_vector(task.model.parameters()) for task in (first, again, other)]
    assert torch.equal(flat[0], flat[1])
    assert torch.equal(first.model.direction, again.model.direction)
    assert not torch.equal(flat[0], flat[2])
    assert torch.equal(first.batches(2, 5)["x"][0], again.batches(2, 5)["x"][0])


def test_the_shipped_suite_of_layers_has_what_opacus_benchmarks_have():
    models = {cell.workload.model for cell in cells_of(suite.load("layers"))}
    assert {"linear", "conv2d", "layernorm", "instancenorm", "groupnorm", "embedding", "mha", "rnn", "gru", "lstm"} <= {
        model.removeprefix("layer:").partition("(")[0] for model in models
    }
    for model in models:
        build(Workload(model=model, batch=16))
