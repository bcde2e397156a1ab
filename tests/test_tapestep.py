"""Plans: for which batches they are made, and when they are made anew."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import dpbench.tapestep
from dpbench.clipping import Clip
from dpbench.errors import DpbenchError, Refused
from dpbench.losses import language_model
from dpbench.preparation import prepare
from dpbench.tapestep import Seen
from tests.promise import batch_of, refusals, right, squares
from tests.zoo import L, Net


@pytest.fixture
def probes(monkeypatch):
    """Counts the probes that are made."""
    made = []
    probe = dpbench.tapestep.probe
    monkeypatch.setattr(dpbench.tapestep, "probe", lambda *args: made.append(1) or probe(*args))
    return made


def test_the_same_batch_again_and_again_is_probed_once(probes):
    step, batch = prepare("bk", L(4, 3).double(), squares), batch_of(5, 4)
    for _ in range(9):
        step(batch)
    assert len(probes) == 1


def test_new_batches_are_probed_at_powers_of_two(probes):
    step = prepare("bk", L(4, 3).double(), squares)
    for seed in range(9):
        step(batch_of(5, 4, seed=seed))
    assert len(probes) == 4


def test_a_plan_holds_for_any_number_of_examples_above_two(probes):
    step = prepare("bk", L(4, 3).double(), squares)
    for size in (5, 9, 3, 4):
        step(batch_of(size, 7, 4))
    assert len(probes) == 3, "the 1st, 2nd and 4th"


def test_a_batch_that_is_filled_again_is_a_new_one():
    seen, batch = Seen(), {"x": torch.zeros(2)}
    assert [seen.is_due(batch), seen.is_due(batch)] == [True, False]
    batch["x"].add_(1)
    assert seen.is_due(batch)


def token_mean(model, batch):
    """Divided by the mean number of tokens of the batch: right while all examples are full."""
    own = language_model(model(batch["x"]), batch["y"])
    tokens = (batch["y"] != -100).sum(1).to(own)
    return own * tokens / tokens.mean()


@pytest.mark.parametrize("name", ["bk", "opacus", "ghostclip"])
def test_mixing_that_the_first_batch_hides_is_found_at_the_second(name):
    torch.manual_seed(0)
    full = {"x": torch.randn(5, 6, 4).double(), "y": torch.randint(3, (5, 6))}
    ragged = {"x": full["x"], "y": full["y"].clone()}
    for example, length in enumerate([6, 2, 5, 6, 1]):
        ragged["y"][example, length:] = -100
    assert refusals(name, L(4, 3), token_mean, [full, ragged], "examples are mixed") == 1


def test_padding_anywhere_in_the_batch_is_looked_at():
    torch.manual_seed(0)
    batch = {"x": torch.randn(32, 6, 4).double(), "y": torch.randint(3, (32, 6))}
    batch["y"][29, 2:] = -100
    assert refusals("bk", L(4, 3), token_mean, [batch], "examples are mixed") == 1


@pytest.mark.parametrize("name", ["bk", "ghostclip"])
def test_a_mask_that_is_skipped_where_it_masks_nothing_is_ordinary(name):
    """As transformers do it; the padded examples are few, one or all, and then none."""

    def losses(model, batch):
        h = model(batch["x"])
        if not batch["mask"].all():
            h = h.masked_fill(~batch["mask"][..., None], 0.0)
        return model(h.tanh()).square().sum((1, 2))

    batches = []
    for seed, padded in enumerate([[4], [], [0, 1, 2, 3, 4, 5, 6, 7], [1, 6], [7]]):
        batch = batch_of(8, 5, 4, seed=seed)
        batch["mask"] = torch.ones(8, 5, dtype=torch.bool)
        for example in padded:
            batch["mask"][example, 2:] = False
        batches.append(batch)
    assert refusals(name, L(4, 4), losses, batches) == 0


def test_a_branch_on_the_whole_batch_that_no_three_examples_take_is_an_error():
    net = Net(lambda n, x: n.l(x).tanh() if len(x) > 3 else n.l(x), l=L(4, 3))
    with pytest.raises(DpbenchError, match="calls other functions on this batch than on three examples of it"):
        prepare("bk", net, squares)({"x": torch.randn(5, 4)})


@pytest.mark.parametrize(
    "compile_", [lambda net: torch.compile(net, backend="eager"), lambda net: net.compile() or net]
)
def test_a_compiled_model_is_refused(compile_):
    with pytest.raises(Refused, match=r"compiled by torch.compile.*_orig_mod"):
        prepare("bk", compile_(nn.Sequential(L(4, 3))), squares)


class Toggled(nn.Module):
    """The same parameters, and another function of the batch when told to."""

    def __init__(self, change):
        super().__init__()
        self.l, self.change, self.on = L(4, 4), change, False

    def forward(self, x):
        return self.l(self.change(x, self.on))


TOGGLED = {
    "centred": lambda x, on: x - x.mean(0) if on else x,
    "permuted": lambda x, on: x.permute(*((1, 0, 2) if on else (0, 1, 2))),
    "einsum": lambda x, on: torch.einsum("abc->bac" if on else "abc->abc", x),
    "shuffled": lambda x, on: x[(torch.arange(len(x)) + 1) % len(x)] if on else x,
    "rolled": lambda x, on: x.roll(int(on), 0),
}


@pytest.mark.parametrize("case", TOGGLED)
def test_another_function_of_the_batch_is_noticed(case):
    net = Toggled(TOGGLED[case]).double()
    step = prepare("bk", net, squares)
    batch = batch_of(4, 4, 4)
    step(batch)
    net.on = True
    if case in ("permuted", "einsum"):
        losses = lambda m, b: m(b["x"]).transpose(0, 1).square().sum((1, 2)) if m.on else squares(m, b)  # noqa: E731
        step = prepare("bk", net, losses)
        net.on = False
        step(batch)
        net.on = True
        assert right(step(batch), net, losses, batch, Clip())
    else:
        with pytest.raises(Refused):
            step(batch)
