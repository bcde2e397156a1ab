import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dpbench import precision
from dpbench.clipping import Clip
from dpbench.errors import DpbenchError, Refused
from dpbench.interface import Output
from dpbench.parity import TOLERANCE, Oracle, at_median, difference
from dpbench.registry import available
from tests.zoo import batch_of, cross_entropy


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.Dropout(0.5), nn.ReLU(), nn.Linear(7, 3))


def oracle(losses=cross_entropy, **clip):
    return Oracle(model(), losses, batch_of(3, 5), Clip(**clip))


def implementation(path, body):
    """A file of an implementation that is the explicit loop, but for ``body``, which changes its output."""
    path.write_text(f"""
from dpbench.interface import Output, Supports
from dpbench.reference import per_example
TITLE, MODULES, SUPPORTS, PRIVATE = "test", "-", Supports(groups=True), True
class Step:
    def __init__(self, *parts):
        self.parts = parts
    def __call__(self, batch, *, unit=None, mask=None):
        model, losses, clip = self.parts
        out = per_example(model, losses, batch, clip)
        {body}
        return out
    def close(self):
        pass
prepare = Step
""")
    return str(path)


@pytest.mark.parametrize("name", sorted(available()))
def test_every_implementation_that_is_installed_passes_in_float64(name):
    found = oracle().check(name)
    assert found.parity.passed
    assert found.parity.precision == "float64"
    assert found.parity.error < 1e-13
    assert found.coverage == 1.0


@pytest.mark.parametrize("native", ["fp32", "bf16", "amp-bf16"])
@pytest.mark.parametrize("name", ["bk", "opacus", "nonprivate"])
def test_in_the_native_precision_the_loops_own_error_is_the_measure(name, native):
    model_, losses, batch = precision.apply(native, model(), cross_entropy, batch_of(3, 5))
    found = Oracle(model_, losses, batch, Clip(), native).check(name).parity
    assert found.passed
    assert found.precision == native
    assert 10 * precision.EPSILONS[native] <= found.tolerance < 0.5


def test_in_the_native_precision_too_a_wrong_gradient_is_found(tmp_path):
    path = implementation(tmp_path / "off.py", "out.grads['0.weight'] = out.grads['0.weight'] * 1.0001")
    assert not Oracle(model(), cross_entropy, batch_of(3, 5), Clip(), "fp32").check(path).parity.passed


def test_some_examples_are_clipped_and_some_are_not():
    found = oracle()
    norms = found._plain.norms
    assert sorted((norms > found.clip.max_norm).tolist()) == [False, False, True]


@pytest.mark.parametrize("style", ["flat", "per-layer"])
@pytest.mark.parametrize("function", ["abadi", "automatic", "normalize"])
def test_it_clips_as_it_is_asked_to(style, function):
    found = oracle(style=style, function=function)
    assert (found.clip.style, found.clip.function) == (style, function)
    assert found.check("bk").parity.passed


@pytest.mark.parametrize(
    ("body", "worst"),
    [
        ("out.grads['0.weight'] = out.grads['0.weight'] * 1.0001", "0.weight"),
        ("out.norms = out.norms * 1.0001", "norms"),
        ("out.grads['3.bias'][0] = float('nan')", "3.bias"),
        ("out.grads['3.bias'] = out.grads['3.bias'][:1]", "3.bias"),
        ("out.norms = None", "norms (it gave none)"),
        ("out.norms = out.norms[:1]", "norms"),
        ("out.grads = {n: g * 2 for n, g in out.grads.items()}", ""),
    ],
)
def test_a_wrong_gradient_is_found_and_named(tmp_path, body, worst):
    found = oracle().check(implementation(tmp_path / "off.py", body)).parity
    assert not found.passed
    assert worst in found.worst


def test_a_parameter_without_a_gradient_is_wrong_and_lowers_the_coverage(tmp_path):
    found = oracle().check(implementation(tmp_path / "frozen.py", "del out.grads['0.weight']"))
    assert not found.parity.passed
    assert "0.weight" in found.parity.worst
    assert found.coverage == pytest.approx(1 - 35 / (35 + 7 + 21 + 3))


def test_a_stability_constant_of_its_own_is_the_oracle_s_unless_another_is_asked_for(tmp_path):
    """The file is the loop with s = 0.1, whatever it is asked for."""
    body = "out = per_example(model, losses, batch, type(clip)(clip.max_norm, stability=0.1))"
    path = implementation(tmp_path / "silent.py", body)
    assert not oracle().check(path).parity.passed
    path = implementation(tmp_path / "open.py", body)
    (tmp_path / "open.py").write_text((tmp_path / "open.py").read_text() + "STABILITY = 0.1\n")
    assert oracle().check(path).parity.passed
    assert not oracle(stability=0.2).check(path).parity.passed
    assert not oracle(function="automatic").check(path).parity.passed


def test_who_says_that_it_is_not_private_is_held_against_the_plain_sum(tmp_path):
    body = "out.norms = None"
    path = implementation(tmp_path / "clipped.py", body)
    (tmp_path / "clipped.py").write_text((tmp_path / "clipped.py").read_text() + "PRIVATE = False\n")
    assert not oracle().check(path).parity.passed, "its sum is clipped"
    path = implementation(tmp_path / "plain.py", body)
    text = (tmp_path / "plain.py").read_text().replace("batch, clip)", "batch, type(clip)(max_norm=1e30))")
    (tmp_path / "plain.py").write_text(text + "PRIVATE = False\n")
    assert oracle().check(path).parity.passed


def test_the_model_is_left_as_it_was():
    one = model()
    before = {n: p.clone() for n, p in one.named_parameters()}
    Oracle(one, cross_entropy, batch_of(3, 5), Clip()).check("bk")
    assert all(torch.equal(p, before[n]) and p.grad is None for n, p in one.named_parameters())


def test_a_parameter_whose_true_gradient_is_zero_is_compared_with_the_whole():
    true = Output({"a": torch.ones(4, dtype=torch.float64), "b": torch.full((4,), 1e-17)}, None, torch.ones(1))
    got = Output({"a": true.grads["a"], "b": -true.grads["b"]}, None, torch.ones(1))
    assert difference(got, true, torch.finfo(torch.float64).eps)[0] < TOLERANCE


def test_gradients_that_are_zero_or_infinite_are_said_to_be():
    with pytest.raises(DpbenchError, match=r"norms of the examples' gradients .* expected positive"):
        oracle(losses=lambda m, b: F.cross_entropy(m(b["x"]) * 0, b["y"], reduction="none"))
    with pytest.raises(DpbenchError, match="expected positive, finite"):
        at_median(Clip(), torch.tensor([float("inf"), float("nan")]))


def test_losses_that_draw_random_numbers_are_refused():
    def noisy(model, batch):
        return cross_entropy(model, batch) * torch.rand(())

    with pytest.raises(Refused, match="the losses are random: two calls"):
        oracle(noisy)
