"""Places: the module of the algorithm, the parameter and the part of the model that every FLOP belongs to."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from dpbench.complexity.meter import traced
from dpbench.complexity.places import Place, Places
from dpbench.gradient import SampleGradient
from dpbench.step import Training
from dpbench.tape import Tape


def of(model, *inputs, step=None):
    """The trace of one step, of the gradient of the summed output if nothing else is said."""
    model.zero_grad()
    resident = [*inputs, *model.parameters(), *model.buffers()]
    return traced(step or (lambda: model(*inputs).float().sum().backward()), resident, model)


def places(trace):
    """FLOPs by module of the algorithm, parameter and part of the model."""
    return trace.by(lambda o: (o.module, o.parameter, o.within))


def product(*sizes):
    total = 2
    for n in sizes:
        total *= n
    return total


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("axes", [(), (7,), (7, 2)])
def test_linear_layers_and_the_first_has_no_output_gradient(bias, axes):
    net = nn.Sequential(nn.Linear(3, 5, bias=bias), nn.Tanh(), nn.Linear(5, 2, bias=bias))
    trace = of(net, torch.rand(4, *axes, 3))
    first, last = product(4, *axes, 3, 5), product(4, *axes, 5, 2)
    assert places(trace) == {
        ("1", "0.weight", "0"): first,
        ("2b", "0.weight", "0"): first,
        ("1", "2.weight", "2"): last,
        ("2a", "2.weight", "2"): last,
        ("2b", "2.weight", "2"): last,
    }
    assert trace.flops == {"1": first + last, "2a": last, "2b": first + last}
    assert trace.others == {}


def test_an_input_that_requires_a_gradient_gives_the_first_layer_one():
    net = nn.Linear(3, 5)
    assert of(net, torch.rand(4, 3, requires_grad=True)).flops == dict.fromkeys(["1", "2a", "2b"], product(4, 3, 5))


def test_a_frozen_layer_passes_gradients_on_and_has_none():
    net = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2).requires_grad_(False))
    trace = of(net, torch.rand(4, 3))
    assert {key for key in places(trace) if key[0] != "1"} == {("2b", "0.weight", "0"), ("2a", "1.weight", "1")}


def test_a_layer_used_twice_has_all_of_its_flops():
    net = nn.Linear(3, 3)
    trace = of(net, torch.rand(4, 3), step=lambda: net(net(torch.rand(4, 3))).sum().backward())
    once = product(4, 3, 3)
    assert places(trace) == {("1", "weight", ""): 2 * once, ("2a", "weight", ""): once, ("2b", "weight", ""): 2 * once}


@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(groups):
    net = nn.Sequential(nn.Conv1d(4, 6, 3, groups=groups), nn.ReLU(), nn.Conv1d(6, 2, 3, groups=groups))
    trace = of(net, torch.rand(3, 4, 9))
    first, last = product(3, 7, 6, 4 // groups, 3), product(3, 5, 2, 6 // groups, 3)
    assert places(trace) == {
        ("1", "0.weight", "0"): first,
        ("2b", "0.weight", "0"): first,
        ("1", "2.weight", "2"): last,
        ("2a", "2.weight", "2"): last,
        ("2b", "2.weight", "2"): last,
    }


class Tied(nn.Module):
    """A table that looks up and multiplies."""

    def __init__(self, tied=True):
        super().__init__()
        self.emb, self.mid, self.head = nn.Embedding(7, 3), nn.Linear(3, 3), nn.Linear(3, 7, bias=False)
        if tied:
            self.head.weight = self.emb.weight

    def forward(self, ids):
        return self.head(self.mid(self.emb(ids)))


IDS = torch.tensor([[0, 1, 2, 2], [3, 0, 6, 1]])


@pytest.mark.parametrize("tied", [True, False])
def test_a_tied_weight_is_called_by_its_first_name_in_the_part_that_multiplies(tied):
    trace, name = of(Tied(tied), IDS), "emb.weight" if tied else "head.weight"
    head, mid = product(8, 3, 7), product(8, 3, 3)
    sizes = {(name, "head"): head, ("mid.weight", "mid"): mid}
    assert places(trace) == {(module, *part): size for module in ("1", "2a", "2b") for part, size in sizes.items()}


def test_an_embedding_multiplies_nothing_and_its_bytes_are_its_own():
    trace = of(Tied(), IDS)
    rows = [o for o in trace.operations if "embedding" in o.name]
    assert [(o.parameter, o.within, o.flops) for o in rows] == 2 * [("emb.weight", "emb", 0)]
    assert all(o.bytes > 0 for o in rows)


class Block(nn.Module):
    """Attention, by products between activations."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(4, 12), nn.Linear(4, 4)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return x + self.out(torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(-1), v))


class Blocks(nn.Module):
    def __init__(self, checkpointed=False):
        super().__init__()
        self.h, self.checkpointed = nn.ModuleList([Block(), Block()]), checkpointed

    def forward(self, x):
        for block in self.h:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return x


BETWEEN = product(2, 3, 3, 4)
"""One product between activations of two examples of three tokens."""


def test_products_between_activations_have_no_parameter_and_are_their_parts():
    trace = of(Blocks(), torch.rand(2, 3, 4))
    assert trace.others == {"h.0": 6 * BETWEEN, "h.1": 6 * BETWEEN}
    between = Counter({key: n for key, n in places(trace).items() if not key[1]})
    assert between == {(m, "", f"h.{i}"): n * BETWEEN for i in (0, 1) for m, n in (("1", 2), ("2a", 4))}


def test_beside_them_products_with_weights_are_the_layers():
    trace = of(Blocks(), torch.rand(2, 3, 4))
    qkv, out = product(2, 3, 4, 12), product(2, 3, 4, 4)
    expected = {}
    for i in (0, 1):
        for layer, size in (("qkv", qkv), ("out", out)):
            for module in ("1", "2a", "2b"):
                if (i, layer, module) != (0, "qkv", "2a"):
                    expected[module, f"h.{i}.{layer}.weight", f"h.{i}.{layer}"] = size
    assert {key: n for key, n in places(trace).items() if key[1]} == expected


def test_for_people_blocks_are_alike():
    assert Place("2a", "h.11.out.weight", "h.11.out").label == "2a: h.*.out"
    assert Place("4", "h.3.w1.weight", "").label == "4: h.*.w1.weight"
    assert Place("1", "", "").label == "1: losses"
    assert set(of(Blocks(), torch.rand(2, 3, 4)).alive) >= {"1: h.*", "1: h.*.qkv"}


def test_a_forward_that_is_recomputed_in_the_backward_is_a_forward():
    net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    x = torch.rand(4, 3, requires_grad=True)
    plain = of(net, x)
    found = of(net, x, step=lambda: checkpoint(net, x, use_reentrant=False).sum().backward())
    # It stops where all that the backward needs is there: before the last product.
    assert places(found) - places(plain) == {("1", "0.weight", "0"): product(4, 3, 5)}
    assert places(plain) - places(found) == {}


def test_recomputed_attention_stays_in_its_part_and_its_backward_is_as_before():
    x = torch.rand(2, 3, 4)
    plain, found = of(Blocks(), x), of(Blocks(checkpointed=True), x)
    assert found.others == {"h.0": 8 * BETWEEN, "h.1": 8 * BETWEEN}
    for module in ("2a", "2b"):
        assert found.flops[module] == plain.flops[module]
    again = places(found) - places(plain)
    assert {module for module, _, _ in again} == {"1"}
    assert {within for _, _, within in again} == {f"h.{i}{part}" for i in (0, 1) for part in ("", ".qkv")}


def test_a_function_that_is_recomputed_outside_any_part_is_a_forward():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3, bias=False)

        def forward(self, x):
            return checkpoint(lambda h: F.linear(h, self.b.weight).tanh(), self.a(x), use_reentrant=False)

    trace, once = of(Net(), torch.rand(4, 3)), product(4, 3, 3)
    assert trace.flops == {"1": 3 * once, "2a": once, "2b": 2 * once}


@pytest.mark.parametrize("cached", [True, False])
def test_a_weight_that_autocast_casts_is_that_weight(cached):
    net, x = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)), torch.rand(4, 3)

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=cached):
            losses = net(x).float().sum()
        losses.backward()

    trace = of(net, x, step=step)
    assert places(trace) == places(of(net, x))
    assert trace.by(lambda o: o.dtype) == {"bfloat16": trace.total}
    casts = [o for o in trace.operations if o.name == "aten._to_copy" and o.module == "1" and o.parameter]
    assert {o.parameter for o in casts} == {f"{i}.{kind}" for i in (0, 2) for kind in ("weight", "bias")}
    assert all(o.flops == 0 and o.bytes > 0 for o in casts)


def test_a_second_backward_of_reweighted_losses_is_done_again():
    net, x = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)), torch.rand(4, 3)

    def step():
        tape = Tape(dict(net.named_parameters()))
        tape.losses = net(x).sum(1)
        torch.autograd.grad(tape.losses.sum(), list(net.parameters()), retain_graph=True)
        tape.reweighted(torch.rand(4))

    once, twice = places(of(net, x)), places(of(net, x, step=step))
    assert twice == once + Counter({(f"{m} again", p, w): n for (m, p, w), n in once.items() if m != "1"})


def test_products_between_activations_are_done_again_too():
    net, x = Blocks(), torch.rand(2, 3, 4)

    def step():
        tape = Tape(dict(net.named_parameters()))
        tape.losses = net(x).sum((1, 2))
        tape.reweighted(torch.rand(2))

    trace = of(net, x, step=step)
    assert {o.module for o in trace.operations if o.flops} == {"1", "2a again", "2b again"}
    assert trace.others == {"h.0": 6 * BETWEEN, "h.1": 6 * BETWEEN}


def per_sample(net, x):
    """A step that takes per-sample gradients by torch.func."""
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(parameters, example):
        return functional_call(net, parameters, (example[None],)).sum()

    return lambda: vmap(grad(loss), in_dims=(None, 0))(parameters, x)


@pytest.mark.parametrize("B", [1, 2, 5])
@pytest.mark.parametrize("axes", [(), (7,)])
def test_per_sample_gradients_of_linear_layers_are_module_4(axes, B):
    net, x = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2, bias=False)), torch.rand(B, *axes, 3)
    first, last = product(B, *axes, 3, 5), product(B, *axes, 5, 2)
    assert places(of(net, x, step=per_sample(net, x))) == {
        ("1", "0.weight", "0"): first,
        ("4", "0.weight", "0"): first,
        ("1", "2.weight", "2"): last,
        ("2a", "2.weight", "2"): last,
        ("4", "2.weight", "2"): last,
    }


@pytest.mark.parametrize("B", [1, 2, 5])
@pytest.mark.parametrize("groups", [1, 2])
def test_per_sample_gradients_of_convolutions_are_module_4(groups, B):
    net, x = nn.Sequential(nn.Conv1d(4, 6, 3, groups=groups), nn.Conv1d(6, 2, 3)), torch.rand(B, 4, 9)
    first, last = product(B, 7, 6, 4 // groups, 3), product(B, 5, 2, 6, 3)
    assert of(net, x, step=per_sample(net, x)).flops == {"1": first + last, "2a": last, "4": first + last}


class Einsum(nn.Module):
    """A product that is written as a sum over indices, as batched products of one."""

    def __init__(self):
        super().__init__()
        self.first, self.w = nn.Linear(3, 3), nn.Parameter(torch.rand(3, 5))

    def forward(self, x):
        return torch.einsum("btd,dp->btp", self.first(x), self.w)


def test_a_sum_over_indices_has_a_parameter_gradient_of_all_examples():
    trace = of(Einsum(), torch.rand(4, 7, 3))
    assert {key for key in places(trace) if key[1] == "w"} == {(m, "w", "") for m in ("1", "2a", "2b")}


def test_per_sample_gradients_of_a_sum_over_indices_are_module_4():
    net, x = Einsum(), torch.rand(4, 7, 3)
    trace = of(net, x, step=per_sample(net, x))
    assert {key for key in places(trace) if key[1] == "w"} == {(m, "w", "") for m in ("1", "2a", "4")}


class Beside(nn.Module):
    """A layer that is trained, and before or after it a product of which there is no gradient."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.a, self.b = kind, nn.Linear(3, 5), nn.Linear(3, 5).requires_grad_(False)
        self.register_buffer("c", torch.rand(3, 5))

    def forward(self, x):
        if self.kind == "before":
            return self.b(x) * self.a(x)
        h = self.a(x)
        return h * (self.b(x) if self.kind == "frozen" else x @ self.c)


@pytest.mark.parametrize("kind", ["before", "frozen", "buffer"])
def test_a_product_without_a_gradient_leaves_the_others_their_backward(kind):
    found = places(of(Beside(kind), torch.rand(4, 3)))
    assert {key: n for key, n in found.items() if key[0] != "1"} == {("2b", "a.weight", "a"): product(4, 3, 5)}


class Merged(nn.Module):
    """A weight that is a product of two, as low-rank adapters merge theirs."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(6, 6), requires_grad=False)
        self.a, self.b = nn.Parameter(torch.rand(2, 6)), nn.Parameter(torch.rand(6, 2))

    def forward(self, x):
        return F.linear(x, self.w + self.b @ self.a)


def test_gradients_of_the_factors_of_a_weight_are_parameter_gradients():
    trace = of(Merged(), torch.rand(4, 6))
    assert trace.flops == {"1": product(4, 6, 6) + product(6, 2, 6), "2b": product(4, 6, 6) + 2 * product(6, 2, 6)}


class Queries(nn.Module):
    """Attention whose queries are learned, the same for every example."""

    def __init__(self):
        super().__init__()
        self.queries, self.k = nn.Parameter(torch.rand(1, 2, 4)), nn.Linear(4, 4)

    def forward(self, x):
        return torch.bmm(self.queries.repeat(len(x), 1, 1), self.k(x).transpose(1, 2))


def test_no_gradient_of_all_examples_is_module_4():
    assert "4" not in of(Queries(), torch.rand(3, 5, 4)).flops


def test_nothing_is_carried_over_from_one_trace_to_the_next():
    net, x = Blocks(), torch.rand(2, 3, 4)
    first, *others = (of(net, x) for _ in range(3))
    for other in others:
        assert Counter(other.operations) == Counter(first.operations)
        assert (other.peak, other.alive) == (first.peak, first.alive)


def test_without_a_model_everything_is_other_work():
    x, w = torch.rand(4, 3), torch.rand(3, 5, requires_grad=True)
    trace = traced(lambda: (x @ w).sum().backward(), [x, w])
    assert trace.flops == {}
    assert trace.others == {"": 2 * product(4, 3, 5)}


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_watched_is_as_before(fails):
    def watched():
        return nn.Module.__call__, Tape.reweighted, SampleGradient.instantiate, Training.update

    before = watched()

    def step():
        with Places({}, {}).watched():
            assert all(now is not then for now, then in zip(watched(), before, strict=True))
            if fails:
                raise ZeroDivisionError

    if fails:
        with pytest.raises(ZeroDivisionError):
            step()
    else:
        step()
    assert watched() == before
