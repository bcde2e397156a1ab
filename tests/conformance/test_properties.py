"""Every property holds for the loop, and is lost with one mistake."""

from __future__ import annotations

import math

import pytest
import torch

from dpbench.conformance.properties import PROPERTIES, Measured, Property
from dpbench.conformance.stepping import STEPS
from dpbench.conformance.subject import Subject
from dpbench.conformance.verdict import Ruling
from tests.conformance.mutants import mutant
from tests.conformance.test_judge import infinite, network, scalar

ALL = {p.name: p for p in PROPERTIES + STEPS}
SUBJECTS = {"a network": Subject(network)}
MISTAKES = {
    "property/sensitivity": {"after": "[g.mul_(1.5) for g in out.grads.values()]"},
    "property/independence": {"after": "out.norms = out.norms / len(out.norms)"},
    "property/permutation": {"after": "out.grads['0.weight'][0] += batch['x'][0, 0]"},
    "property/accumulation": {"after": "[g.div_(len(out.losses)) for g in out.grads.values()]"},
    "property/unclipped": {"before": "clip = Clip(1.0)"},
    "step/whole": {"after": "out.grads['2.bias'] += self.steps"},
    "step/empty": {"after": "out.grads['2.bias'] += 1"},
    "step/moves": {"after": "del out.grads['2.bias']", "returned": "out"},
}


@pytest.mark.parametrize("name", ALL)
def test_holds_for_the_loop(tmp_path, name):
    verdict = ALL[name].judge(SUBJECTS, mutant(tmp_path))
    assert verdict.ruling is Ruling.RIGHT, verdict
    assert "\n" not in ALL[name].reason


@pytest.mark.parametrize("name", MISTAKES)
def test_is_lost_with_a_mistake(tmp_path, name):
    verdict = ALL[name].judge(SUBJECTS, mutant(tmp_path, **MISTAKES[name]))
    assert verdict.ruling is Ruling.WRONG, verdict
    assert verdict.worst


def test_the_sensitivity_is_a_number_for_each_style(tmp_path):
    """Gradients 1, 2 and 4 under R = 8: the largest moves the sum by 4."""
    subjects = {"scalar": Subject(lambda: scalar(max_norm=8.0))}
    verdict = ALL["property/sensitivity"].judge(subjects, mutant(tmp_path))
    assert verdict.figure == "flat 0.500 R, per-layer 0.500 R, groups 0.500 R"


def test_the_worst_of_several_problems_is_named(tmp_path):
    mistake = mutant(tmp_path, after="out.norms = out.norms / len(out.norms)")
    subjects = {"small": Subject(network), "infinite": Subject(infinite)}
    assert "norms in " in ALL["property/independence"].judge(subjects, mistake).worst


@pytest.mark.parametrize(
    ("name", "break_it"),
    [
        ("step/noise", lambda out, sigma, batch, g: (sigma * 1.1, batch, g)),
        ("step/noise", lambda out, sigma, batch, g: (sigma * 2**0.5, batch, g)),
        ("step/noise", lambda out, sigma, batch, g: (sigma, batch, g.manual_seed(0))),
        ("step/empty", lambda out, sigma, batch, g: (0.0, batch, g)),
        ("step/scaling", lambda out, sigma, batch, g: (sigma, len(out.losses), g)),
    ],
)
def test_a_wrong_private_step_is_found(tmp_path, monkeypatch, name, break_it):
    from dpbench.conformance import stepping
    from dpbench.noise import privatize

    def broken(model, out, sigma, batch, g=None):
        privatize(model, out, *break_it(out, sigma, batch, g))

    monkeypatch.setattr(stepping, "privatize", broken)
    assert ALL[name].judge(SUBJECTS, mutant(tmp_path)).ruling is Ruling.WRONG


def one_for_all(z):
    return {n: z[n].flatten()[:1].expand(z[n].numel()).view_as(z[n]) for n in z}


def one_for_the_rows(z):
    return {n: z[n][:1].expand_as(z[n]) if z[n].ndim > 1 else z[n] for n in z}


def the_same_for_two(z):
    return z | {"2.bias": z["0.bias"][:3]}


def uniform(z):
    return {n: (torch.erf(v / 2**0.5)) * 3**0.5 for n, v in z.items()}


def without_the_last(z):
    return z | {"2.bias": torch.zeros_like(z["2.bias"])}


@pytest.mark.parametrize("change", [one_for_all, one_for_the_rows, the_same_for_two, uniform, without_the_last])
def test_noise_of_another_kind_is_found(tmp_path, monkeypatch, change):
    from dpbench.conformance import stepping

    def broken(model, out, sigma, batch, g=None):
        z = {n: torch.randn(v.shape, generator=g, dtype=v.dtype) for n, v in out.grads.items()}
        for n, value in change(z).items():
            model.get_parameter(n).grad = (out.grads[n] + sigma * out.clip.max_norm * value) / batch

    monkeypatch.setattr(stepping, "privatize", broken)
    verdict = ALL["step/noise"].judge(SUBJECTS, mutant(tmp_path))
    assert verdict.ruling is Ruling.WRONG, verdict


@pytest.mark.parametrize("errors", [(math.inf, 0.0), (0.0, math.inf), (math.nan, 0.0), (0.0, math.nan)])
def test_one_failure_among_several_problems_is_a_failure(errors):
    left = iter(errors)
    failing = Property("property/any", "A reason.", "property", lambda *_: Measured((next(left), "it")))
    subjects = {"a": Subject(network), "b": Subject(network)}
    assert failing.judge(subjects, "bk").ruling is Ruling.WRONG


def test_who_gives_no_norms_has_no_property_of_theirs(tmp_path):
    plain = mutant(tmp_path, before="clip = Clip(1e30)", after="out.norms = None", private=False)
    rulings = {name: p.judge(SUBJECTS, plain).ruling for name, p in ALL.items()}
    assert rulings["property/independence"] is rulings["step/noise"] is Ruling.REFUSES
    assert rulings["property/sensitivity"] is Ruling.WRONG
