import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dpbench import precision
from dpbench.clipping import Clip
from dpbench.errors import DpbenchError, Refused
from dpbench.interface import Output
from dpbench.parity import TOLERANCE, Oracle, at_median, difference
from dpbench.reference import per_example
from dpbench.registry import ablations, available
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


@pytest.mark.parametrize("name", [*available(), *ablations()])
def test_every_implementation_that_is_installed_passes_in_float64(name):
    found = oracle().check(name)
    assert found.parity.passed
    assert found.parity.precision == "float64"
    assert found.parity.error < 1e-13
    assert found.coverage.share == 1


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
    norms = per_example(found._model, found._losses, found._batch, Clip(1e30)).norms
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
        ("out.grads['0.weight'][0] = float('nan')", "0.weight"),
        ("out.norms[1] = float('nan')", "norms"),
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


def test_a_gradient_that_was_computed_and_dropped_is_wrong(tmp_path):
    """The norm is that of all parameters, so what is left is clipped too much."""
    found = oracle().check(implementation(tmp_path / "dropped.py", "del out.grads['0.weight']"))
    assert not found.parity.passed
    assert (found.coverage.asked, found.coverage.trained) == (35 + 7 + 21 + 3, 7 + 21 + 3)
    assert found.coverage.frozen == {"0.weight": 35}


FREEZE = """model.get_parameter("0.weight").requires_grad_(False)
        out = per_example(model, losses, batch, clip)
        model.get_parameter("0.weight").requires_grad_(True)"""


def test_a_frozen_parameter_lowers_the_coverage_and_the_others_are_to_be_right(tmp_path):
    found = oracle().check(implementation(tmp_path / "frozen.py", FREEZE))
    assert found.parity.passed
    assert found.coverage.frozen == {"0.weight": 35}
    found = oracle().check(implementation(tmp_path / "off.py", f"{FREEZE}\n        out.grads['0.bias'] *= 1.01"))
    assert found.parity.worst == "0.bias"
    assert not found.parity.passed


@pytest.mark.parametrize(
    ("name", "norms"),
    [
        ("bk", {"ghost": 35 + 21, "vector": 7 + 3}),
        ("opacus", {"instantiated": 35 + 21, "vector": 7 + 3}),
        ("vmap", {"instantiated": 66}),
        ("tf_privacy", {"loop": 66}),
        ("nonprivate", {}),
    ],
)
def test_the_coverage_says_how_norms_were_found(name, norms):
    assert oracle().check(name).coverage.norms == norms


def test_who_does_not_tell_how_norms_are_found_need_not(tmp_path):
    assert oracle().check(implementation(tmp_path / "quiet.py", "pass")).coverage.norms == {}


def test_what_a_third_party_tells_of_its_norms_is_in_the_coverage_or_refused_by_name(tmp_path):
    def told(methods):
        path = tmp_path / f"tells{len(list(tmp_path.iterdir()))}.py"
        return oracle().check(implementation(path, f"self.norm_methods = {methods!r}")).coverage

    assert told({"0.weight": "ghost", "3.weight": "loop"}).norms == {"ghost": 35, "loop": 21}
    with pytest.raises(DpbenchError, match="unknown norm method of 0.weight 'gost'. Did you mean ghost"):
        told({"0.weight": "gost"})
    with pytest.raises(DpbenchError, match="unknown parameter in norm_methods '0.weigth'. Did you mean 0.weight"):
        told({"0.weigth": "ghost"})
    with pytest.raises(DpbenchError, match="norm_methods is a list; expected a mapping from names of parameters to"):
        told(["ghost"])


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


@pytest.mark.parametrize(("moves", "random"), [(1e-15, False), (1e-12, True)])
def test_losses_may_differ_by_the_order_of_their_sums_and_not_by_more(moves, random):
    calls = iter(range(100))

    def noisy(model, batch):
        return cross_entropy(model, batch) * (1 + moves * next(calls))

    if random:
        with pytest.raises(Refused, match="the losses are random"):
            oracle(noisy)
    else:
        assert oracle(noisy).check("nonprivate").parity.passed
