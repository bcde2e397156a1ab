"""Contractions with one parameter: equal to torch's, by the rule of matrices where they are matrix products."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dpbench.rewriting import Rewritten, contraction
from tests.promise import IMPLEMENTATIONS, batch_of, refusals, squares
from tests.seen import facts
from tests.zoo import Net

SIZES = {"b": 5, "t": 4, "s": 3, "d": 6, "h": 2, "k": 3, "o": 7}
PLAIN = {
    "btd,do->bto": (4, 6, 7),
    "btd,od->bto": (4, 6, 7),
    "bd,do->bo": (1, 6, 7),
    "btd,dhk->bthk": (4, 6, 6),
    "bthk,hkd->btd": (4, 6, 6),
    "bhtk,khd->btd": (4, 6, 6),
    "btd,hdk->bhtk": (4, 6, 6),
    "btd,to->bod": (6, 4, 7),
    "tbd, do -> otb": (4, 6, 7),
    "btd,d->bt": (4, 6, 1),
    "btd,td->b": (1, 24, 1),
    "...d,do->...o": (4, 6, 7),
}
OTHERS = ["bthd,hdk->bthk", "btd,do->bo", "btd,do->bt", "btd,d->btd", "bd,o->bdo"]


def net_of(equation, *, weight_first=False):
    """A network of one contraction of an activation (b, ...) with the weight."""
    terms, out = equation.replace(" ", "").replace("...", "bt").split("->")
    xs, ws = terms.split(",")
    written = equation
    if weight_first:
        terms, out_written = equation.split("->")
        written = ",".join(reversed(terms.split(","))) + "->" + out_written
    torch.manual_seed(0)
    weight = torch.randn([SIZES[c] for c in ws])

    def forward(n, x):
        x = x.movedim(0, xs.index("b"))
        y = torch.einsum(written, *((n.w, x) if weight_first else (x, n.w)))
        return y.movedim(out.index("b"), 0)[..., None]

    return Net(forward, w=weight).double(), [SIZES[c] for c in xs if c != "b"]


@pytest.mark.parametrize("weight_first", [False, True])
@pytest.mark.parametrize("equation", PLAIN)
def test_a_matrix_product_has_the_rule_of_matrices(equation, weight_first):
    net, shape = net_of(equation, weight_first=weight_first)
    x = batch_of(5, *shape)["x"]
    with Rewritten() as mode:
        mine = net(x)
    assert mode.happened
    assert torch.allclose(mine, net(x), rtol=1e-12, atol=1e-12)
    (found,) = facts(net, squares, {"x": x}).values()
    assert found.matrix
    assert (found.rule, found.T, found.d, found.p) == ("linear", *PLAIN[equation])


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("equation", [*PLAIN, *OTHERS])
def test_every_contraction_is_right(equation, name):
    net, shape = net_of(equation)
    assert refusals(name, net, squares, [batch_of(size, *shape) for size in (5, 1, 4)]) == 0


@pytest.mark.parametrize("equation", OTHERS)
def test_what_is_no_matrix_product_is_left_to_the_generic_rule(equation):
    net, shape = net_of(equation)
    (found,) = facts(net, squares, batch_of(5, *shape)).values()
    assert found.rule == "generic"


FORMS = {
    "operands in a list": lambda x, w: torch.einsum("btd,do->bto", [x, w]),
    "three operands": lambda x, w: torch.einsum("btd,bt,do->bto", x, x[..., 0], w),
    "no result named": lambda x, w: torch.einsum("btd,dz", x, w),
    "lists of axes": lambda x, w: torch.einsum(x, [0, 1, 2], w, [2, 3], [0, 1, 3]),
    "tensordot": lambda x, w: torch.tensordot(x, w, 1),
    "tensordot over two axes": lambda x, w: torch.tensordot(x, w[: x.shape[1], : x.shape[2]], ([1, 2], [0, 1]))[
        ..., None
    ],
    "tensordot, weight first": lambda x, w: torch.tensordot(w, x, dims=([0], [2])).movedim(1, 0),
    "weight first": lambda x, w: w.t() @ x.mT,
}


@pytest.mark.parametrize("name", ["bk", "opacus", "ghostclip"])
@pytest.mark.parametrize("form", FORMS)
def test_all_ways_to_write_one_are_right(form, name):
    torch.manual_seed(0)
    net = Net(lambda n, x: FORMS[form](x, n.w), w=torch.randn(6, 7))
    assert refusals(name, net, squares, [batch_of(5, 4, 6), batch_of(1, 4, 6), batch_of(4, 4, 6)]) == 0


DIRECT = {
    "tensordot": lambda x, w: torch.tensordot(x, w, 1),
    "tensordot of named axes": lambda x, w: torch.tensordot(x, w, dims=([2], [0])),
    "tensordot, weight first": lambda x, w: torch.tensordot(w, x, dims=([0], [2])).movedim(1, 0),
}


@pytest.mark.parametrize("form", DIRECT)
def test_tensordot_is_a_matrix_product(form):
    net = Net(lambda n, x: DIRECT[form](x, n.w), w=torch.randn(6, 7))
    (found,) = facts(net, squares, {"x": torch.randn(5, 4, 6)}).values()
    assert (found.rule, found.matrix, found.T, found.d, found.p) == ("linear", True, 4, 6, 7)


@pytest.mark.parametrize("multiply", [lambda w, x: w @ x, torch.matmul])
def test_a_weight_on_the_left_mixes_positions(multiply):
    net = Net(lambda n, x: multiply(n.w, x), w=torch.randn(7, 4))
    (found,) = facts(net, squares, {"x": torch.randn(5, 4, 6)}).values()
    assert (found.rule, found.matrix, found.T, found.d, found.p) == ("linear", True, 6, 4, 7)


def test_letters_that_are_broadcast_are_left_to_einsum():
    x, w = torch.randn(5, 4, 6), nn.Parameter(torch.randn(6, 3))
    assert contraction.einsum("btd,dk->btk", x[..., :1], w) is NotImplemented
    assert contraction.einsum("btd,dk->btk", x, nn.Parameter(w.data[:1])) is NotImplemented
