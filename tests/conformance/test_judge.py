"""What becomes of an implementation with one mistake in it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dpbench.cases import Call, Case, Problem
from dpbench.cases.problem import classified, cross_entropy, vectors
from dpbench.conformance.judge import judge
from dpbench.conformance.verdict import Ruling
from tests.conformance.mutants import mutant


def network() -> Problem:
    return classified(nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)), vectors(5, 6), vectors(4, 6, seed=2))


def case_of(build=network, **fields):
    return Case("family/what", "A reason.", "property", build, **fields)


def test_the_loop_itself_is_right_in_every_precision(tmp_path):
    verdict = judge(case_of(), mutant(tmp_path))
    assert verdict.ruling is Ruling.RIGHT
    assert verdict.error == 0
    assert set(verdict.native) == {"fp32", "bf16", "amp-bf16"}
    assert all(beside.error == beside.loop for beside in verdict.native.values())
    assert verdict.native["fp32"].loop < 1e-5 < verdict.native["bf16"].loop < 1e-1


@pytest.mark.parametrize(
    ("mistake", "worst"),
    [
        ({"after": "out.grads['0.weight'] *= 1 + 1e-7 / self.steps"}, "0.weight in call 1"),
        ({"after": "out.norms[2] *= 1 + 1e-7 / self.steps"}, "norms in call 1"),
        ({"after": "out.grads['2.bias'] += self.steps - 1"}, "2.bias in call 2"),
        ({"after": "out.grads['0.bias'][:] = float('nan')"}, "0.bias in call 1"),
        ({"after": "out.norms = out.norms[:-1]"}, "norms (of shape (4,), expected (5,)) in call 1"),
        ({"after": "out.norms = None"}, "norms (it gave none)"),
        ({"before": "clip = Clip(2 * clip.max_norm)"}, "0.bias in call 2"),
        ({"returned": "out"}, "0.weight.grad (it is not what the output says)"),
        ({"after": "out.losses = out.losses * 2"}, "losses in call 1"),
        ({"after": "out.losses = out.losses.mean()"}, "losses (of shape (), expected (5,)) in call 1"),
        (
            {"before": "model.eval()"},
            "the model (a hook, an attribute or a mode is left on it after close())",
        ),
        (
            {"before": "model.register_forward_hook(lambda *_: None)"},
            "the model (a hook, an attribute or a mode is left on it after close())",
        ),
    ],
)
def test_mistakes_are_wrong_and_say_where(tmp_path, mistake, worst):
    verdict = judge(case_of(), mutant(tmp_path, **mistake))
    assert verdict.ruling is Ruling.WRONG
    assert not verdict.error <= verdict.tolerance
    assert verdict.worst == worst or mistake.get("before")
    assert not verdict.native


def test_where_every_call_is_refused_it_refuses(tmp_path):
    case = case_of(lambda: classified(nn.Linear(6, 3), infinite().calls[0].batch["x"], max_norm=1.0))
    assert judge(case, mutant(tmp_path, before="raise Refused('not finite')")).ruling is Ruling.REFUSES


def test_mistakes_of_a_library_that_are_passed_on_are_crashes(tmp_path):
    crashes = judge(case_of(), mutant(tmp_path, before="raise Refused('it said: no') from AttributeError()"))
    assert crashes.ruling is Ruling.CRASHES
    assert judge(case_of(), mutant(tmp_path, before="raise NotImplementedError('no')")).ruling is Ruling.REFUSES


def test_who_trains_nothing_freezes_everything(tmp_path):
    nothing = {"returned": "type(out)({}, None, out.losses)"}
    verdict = judge(case_of(), mutant(tmp_path, **nothing))
    assert (verdict.ruling, len(verdict.frozen)) == (Ruling.FREEZES, 4)


def test_of_a_wrong_gradient_it_is_said_whether_it_exceeds_the_bound(tmp_path):
    found = judge(case_of(), mutant(tmp_path, after="[g.mul_(1.5) for g in out.grads.values()]"))
    assert found.figure == "an example moves the sum by 1.500 R"


def test_who_says_that_it_cannot_refuses_and_who_raises_crashes(tmp_path):
    refuses = judge(case_of(), mutant(tmp_path, prepare="raise Refused('no.  Do\\n this.')"))
    assert (refuses.ruling, refuses.message) == (Ruling.REFUSES, "no. Do this.")
    crashes = judge(case_of(), mutant(tmp_path, before="raise ValueError('oh')"))
    assert (crashes.ruling, crashes.message) == (Ruling.CRASHES, "ValueError: oh")


FROZEN = {
    "before": "model.get_parameter('0.weight').requires_grad_(False)",
    "after": "model.get_parameter('0.weight').requires_grad_(True)",
    "returned": "output({n: self.parameters[n] for n in out.grads}, out.grads, out.norms, out.losses)",
}


def test_parameters_without_a_gradient_are_frozen_if_the_others_are_right(tmp_path):
    """Norm and factor are those of what is trained."""
    verdict = judge(case_of(), mutant(tmp_path, **FROZEN))
    assert (verdict.ruling, verdict.frozen, verdict.asked) == (Ruling.FREEZES, ("0.weight",), 4)
    dropped = judge(case_of(), mutant(tmp_path, **FROZEN | {"before": "pass", "after": "del out.grads['0.weight']"}))
    assert dropped.ruling is Ruling.WRONG


def test_an_implementation_that_clips_nothing_is_held_against_the_plain_sum(tmp_path):
    plain = {"before": "clip = Clip(1e30)", "after": "out.norms = None", "private": False}
    assert judge(case_of(), mutant(tmp_path, **plain)).ruling is Ruling.RIGHT
    assert judge(case_of(), mutant(tmp_path, **plain | {"before": "pass"})).ruling is Ruling.WRONG


def mixed() -> Problem:
    problem = network()
    problem.losses = lambda model, batch: cross_entropy(model, batch) / len(batch["y"])
    return problem


def test_where_no_example_has_a_gradient_a_refusal_is_right(tmp_path):
    case = case_of(mixed, refused="examples are mixed")
    batchwise = mutant(tmp_path, after="out = together(model, losses, batch, clip)")
    assert judge(case, batchwise).ruling is Ruling.WRONG
    assert judge(case, mutant(tmp_path)).ruling is Ruling.RIGHT, "it takes each example on its own"
    refuses = judge(case, mutant(tmp_path, prepare="raise Refused('it mixes')"))
    assert (refuses.ruling, refuses.message) == (Ruling.RIGHT, "refuses: it mixes")
    assert judge(case, mutant(tmp_path, prepare="raise ValueError()")).ruling is Ruling.CRASHES


def scalar(**fields) -> Problem:
    """The loss is w x, its gradient x."""
    model = nn.Linear(1, 1, bias=False)
    batch = {"x": torch.tensor([[1.0], [2.0], [-4.0]])}
    return Problem(model, lambda m, b: m(b["x"])[:, 0], (Call(batch),), **fields)


def test_the_loop_is_held_against_arithmetic(tmp_path):
    assert judge(case_of(lambda: scalar(norms=(1.0, 2.0, 4.0))), mutant(tmp_path)).ruling is Ruling.RIGHT
    with pytest.raises(AssertionError, match="by hand"):
        judge(case_of(lambda: scalar(norms=(1.0, 2.0, 3.0))), mutant(tmp_path))


def infinite() -> Problem:
    x = vectors(4, 6)
    x[1, 2] = float("inf")
    return classified(nn.Sequential(nn.Linear(6, 3)), x, vectors(4, 6, seed=3), max_norm=1.0)


@pytest.mark.parametrize(
    ("mistake", "ruling"),
    [
        ({}, Ruling.RIGHT),
        ({"after": "out.norms.nan_to_num_(0)"}, Ruling.WRONG),
        ({"after": "[g.nan_to_num_(0) for g in out.grads.values()]"}, Ruling.WRONG),
        ({"after": "out.norms[0] = float('nan')"}, Ruling.WRONG),
    ],
)
def test_an_example_that_is_not_finite_must_be_seen_and_leave_nothing_behind(tmp_path, mistake, ruling):
    assert judge(case_of(infinite), mutant(tmp_path, **mistake)).ruling is ruling


def dropped() -> Problem:
    problem = classified(nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3)), vectors(5, 6))
    problem.random = True
    return problem


TOGETHER = "torch.set_rng_state(state); out = together(model, losses, batch, clip)"


@pytest.mark.parametrize(
    ("mistake", "ruling"),
    [
        ({}, Ruling.RIGHT),
        ({"before": "state = torch.get_rng_state()", "after": TOGETHER}, Ruling.RIGHT),
        ({"before": "torch.manual_seed(5)"}, Ruling.WRONG),
    ],
)
def test_draws_are_those_of_the_batch_or_of_one_example_after_the_other(tmp_path, mistake, ruling):
    assert judge(case_of(dropped), mutant(tmp_path, **mistake)).ruling is ruling


def autocast() -> Problem:
    def losses(model, batch):
        with torch.autocast("cpu", torch.bfloat16):
            return cross_entropy(model, batch).float()

    problem = classified(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)), vectors(5, 6))
    problem.losses, problem.native = losses, True
    return problem


def test_autocast_is_judged_as_it_is_by_the_loops_own_error(tmp_path):
    verdict = judge(case_of(autocast), mutant(tmp_path))
    assert (verdict.ruling, verdict.precision) == (Ruling.RIGHT, "autocast")
    assert 1e-3 < verdict.tolerance < 1
    assert judge(case_of(autocast), mutant(tmp_path, after="out.norms *= 1.5")).ruling is Ruling.WRONG
