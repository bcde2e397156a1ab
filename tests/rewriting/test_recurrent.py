"""Fused recurrent layers: equal to torch's, right for every implementation, by ghost norms, packed ones refused."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import tests.zoo as zoo
from dpbench.clipping import Clip
from dpbench.errors import Refused
from dpbench.preparation import prepare
from dpbench.reference import per_example
from dpbench.registry import available
from dpbench.rewriting import Rewritten
from tests.promise import IMPLEMENTATIONS, batch_of, refusals, squares
from tests.seen import facts, sizes
from tests.zoo import L, Net

T, D, H = 4, 3, 5
KINDS = {
    "lstm": lambda **k: nn.LSTM(D, H, **k),
    "lstm with projections": lambda **k: nn.LSTM(D, H, proj_size=2, **k),
    "gru": lambda **k: nn.GRU(D, H, **k),
    "rnn": lambda **k: nn.RNN(D, H, **k),
    "rnn of relu": lambda **k: nn.RNN(D, H, nonlinearity="relu", **k),
}
SHAPES = [
    {"num_layers": n, "bidirectional": both, "bias": bias, "batch_first": first}
    for n, both, bias, first in product((1, 2), (False, True), (False, True), (False, True))
]
CELLS = {
    "lstm": lambda **k: nn.LSTMCell(D, H, **k),
    "gru": lambda **k: nn.GRUCell(D, H, **k),
    "rnn": lambda **k: nn.RNNCell(D, H, **k),
    "rnn of relu": lambda **k: nn.RNNCell(D, H, nonlinearity="relu", **k),
}


def flat(result):
    return [result] if isinstance(result, torch.Tensor) else [t for part in result for t in flat(part)]


def same(module, *inputs):
    """Whether values and gradients are those of torch's own."""
    given = [*(i.requires_grad_() for i in flat(inputs)), *module.parameters()]
    plain = flat(module(*inputs))
    with Rewritten() as mode:
        mine = flat(module(*inputs))
    assert mode.happened
    torch.manual_seed(1)
    ds = [torch.randn_like(out) for out in plain]
    pairs = zip(torch.autograd.grad(plain, given, ds), torch.autograd.grad(mine, given, ds), strict=True)
    return all(torch.allclose(a, b, rtol=1e-12, atol=1e-13) for a, b in (*zip(plain, mine, strict=True), *pairs))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: " ".join(f"{k}={v}" for k, v in s.items()))
@pytest.mark.parametrize("kind", KINDS)
def test_equals_torch_with_states_and_without(kind, shape):
    torch.manual_seed(0)
    module = KINDS[kind](**shape).double()
    x = torch.randn(3, T, D, dtype=torch.float64)
    x = x if shape["batch_first"] else x.transpose(0, 1).detach()
    assert same(module, x)
    layers = shape["num_layers"] * (2 if shape["bidirectional"] else 1)
    h = torch.randn(layers, 3, getattr(module, "proj_size", 0) or H, dtype=torch.float64)
    c = torch.randn(layers, 3, H, dtype=torch.float64)
    assert same(module, x, (h, c) if isinstance(module, nn.LSTM) else h)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", CELLS)
def test_a_cell_equals_torch(kind, bias):
    torch.manual_seed(0)
    cell = CELLS[kind](bias=bias).double()
    x, h, c = (torch.randn(3, n, dtype=torch.float64) for n in (D, H, H))
    assert same(cell, x, (h, c) if kind == "lstm" else h)


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_dropout_between_layers_is_that_of_training(kind):
    torch.manual_seed(0)
    module = KINDS[kind](num_layers=3, dropout=0.5).double()
    x = torch.randn(T, 3, D, dtype=torch.float64)
    for training in (True, False):
        module.train(training)
        torch.manual_seed(2)
        plain = module(x)[0]
        torch.manual_seed(2)
        with Rewritten():
            assert torch.allclose(module(x)[0], plain, rtol=1e-12)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_step_with_dropout_between_layers_is_taken(name):
    torch.manual_seed(0)
    net = Net(lambda n, x: n.m(x)[0], m=nn.LSTM(D, H, num_layers=2, dropout=0.5, batch_first=True)).double()
    out = prepare(name, net, squares, Clip(0.5))(batch_of(5, T, D))
    assert out.norms.isfinite().all()
    net.eval()
    assert refusals(name, net, squares, [batch_of(5, T, D)], clip=Clip(0.5)) == 0


def stacked(module, both, first):
    def forward(n, x):
        states = [s.expand(-1, len(x), -1) for s in (n.h, n.c)]
        out, (h, c) = n.m(x if first else x.transpose(0, 1), tuple(states))
        return n.o((out if first else out.transpose(0, 1))[:, -2:]).mean(1) + n.p(h.sum(0) + c.sum(0))

    layers = 4 if both else 2
    return Net(
        forward, m=module(D, H, num_layers=2, bidirectional=both, batch_first=first), o=L(H * layers // 2, 3),
        p=L(H, 3), h=torch.randn(layers, 1, H), c=torch.randn(layers, 1, H),
    )  # fmt: skip


@pytest.mark.parametrize("size", [5, 1, T])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("name", [name for name in available() if name != "nonprivate"])
def test_with_learned_first_states_every_implementation_equals_the_loop(name, both, first, size):
    torch.manual_seed(0)
    net = stacked(nn.LSTM, both, first).double()
    batch = {"x": torch.randn(size, T, D).double(), "y": torch.randint(3, (size,))}
    expected = per_example(net, zoo.cross_entropy, batch, Clip(0.3))
    assert zoo.error(zoo.run(prepare(name, net, zoo.cross_entropy, Clip(0.3)), batch), expected) < 1e-12


def test_weights_are_matrices_that_are_used_at_all_times():
    net = Net(lambda n, x: n.m(x)[0], m=nn.LSTM(D, H, bidirectional=True, batch_first=True))
    found = sizes(net, squares, {"x": torch.randn(2, T, D)})
    assert found == {
        f"m.weight_{kind}_l0{way}": ("linear", T, d, 4 * H)
        for kind, d in (("ih", D), ("hh", H))
        for way in ("", "_reverse")
    }  # fmt: skip


def test_a_recurrent_weight_has_cross_terms_between_its_uses():
    torch.manual_seed(0)
    net = Net(lambda n, x: n.m(x, n.h.expand(1, len(x), -1))[0], m=nn.RNN(D, H, bias=False, batch_first=True),
              h=torch.ones(1, 1, H)).double()  # fmt: skip
    for name in ("m.weight_ih_l0", "h"):
        net.get_parameter(name).requires_grad_(False)
    batch = batch_of(5, T, D)
    assert list(facts(net, squares, batch)) == ["m.weight_hh_l0"]
    for name in IMPLEMENTATIONS:
        assert refusals(name, net, squares, [batch]) == 0


@pytest.mark.parametrize("name", ["bk", "opacus", "ghostclip"])
def test_sequences_of_other_lengths_get_plans_of_their_own(name):
    torch.manual_seed(0)
    net = Net(lambda n, x: n.m(x)[0], m=nn.GRU(D, H, batch_first=True))
    assert refusals(name, net, squares, [batch_of(5, n, D) for n in (4, 2, 1, 4)]) == 0


def test_a_frozen_layer_is_left_fused_and_gradients_pass_through_it():
    torch.manual_seed(0)
    net = Net(lambda n, x: n.m(n.i(x))[0], i=L(D, D), m=nn.LSTM(D, H, batch_first=True).requires_grad_(False)).double()
    with Rewritten() as mode:
        net(batch_of(5, T, D)["x"])
    assert not mode.happened
    assert refusals("bk", net, squares, [batch_of(5, T, D)]) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_packed_sequence_is_refused_with_a_remedy(kind):
    def forward(n, x):
        packed = pack_padded_sequence(x, torch.full((len(x),), T), batch_first=True)
        return pad_packed_sequence(n.m(packed)[0], batch_first=True)[0]

    net = Net(forward, m=KINDS[kind](batch_first=True))
    with pytest.raises(Refused, match=r"reads a packed sequence.*Give it the padded batch"):
        prepare("bk", net, squares, Clip())({"x": torch.randn(5, T, D)})


def test_time_taken_for_the_batch_is_refused():
    net = Net(lambda n, x: n.m(x)[0], m=nn.LSTM(D, H))
    with pytest.raises(Refused, match="depend on the batch size|mixed"):
        prepare("bk", net, squares, Clip())({"x": torch.randn(5, T, D)})
