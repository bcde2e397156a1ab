import ast
import copy
import inspect
import sys
from pathlib import Path

import pytest
import torch

from dpbench import cases
from dpbench.batch import example, size
from dpbench.cases import CASES
from dpbench.clipping import Clip
from dpbench.double import double
from dpbench.reference import per_example

NAMES = sorted(CASES)
HAS_GRADIENTS = [name for name in NAMES if not CASES[name].refused]
MIXED = [name for name in NAMES if "mixes examples" in CASES[name].refused]
REFUSED_FOR_ANOTHER_REASON = {
    "embedding/max-norm",
    "normalization/instance-norm-tracking",
    "inplace/activation-overwritten",
    "autograd/hook-that-normalises",
    "autograd/checkpointed-with-reentry-first",
}
NOT_FINITE = {"batch/not-finite": {1}}
"""The calls of a case in which an example is infinite on purpose."""


def built(name):
    case = CASES[name]
    if case.needs:
        pytest.importorskip(case.needs)
    torch.manual_seed(0)
    return case.build()


def loop(problem, number, max_norm=1.0, **kwargs):
    """The explicit loop over one call of a float64 copy."""
    call = problem.calls[number]
    model, losses, batch = double(problem.model, problem.losses, call.batch)
    torch.manual_seed(1)
    return per_example(model, losses, batch, Clip(max_norm, **kwargs), unit=call.unit, mask=call.mask)


@pytest.mark.parametrize("name", NAMES)
def test_says_why_it_is_a_case_in_one_line(name):
    case = CASES[name]
    assert case.reason.endswith(".")
    assert len(case.reason) <= 110
    assert "\n" not in case.reason
    assert case.source


def test_no_function_is_a_case_twice_and_no_name_lost():
    decorated = [
        f"{family.__name__.rpartition('.')[2]}/{node.name.replace('_', '-')}"
        for family in cases.FAMILIES
        for node in ast.parse(inspect.getsource(family)).body
        if isinstance(node, ast.FunctionDef) and node.decorator_list and "case" in ast.dump(node.decorator_list[0])
    ]
    assert decorated == list(CASES)
    assert len(set(decorated)) == len(decorated)


def test_families_are_all_the_files_there_are():
    files = {path.stem for path in Path(cases.__file__).parent.glob("*.py")} - {"__init__", "case", "problem"}
    assert {family.__name__.rpartition(".")[2] for family in cases.FAMILIES} == files


@pytest.mark.parametrize("family", cases.FAMILIES, ids=lambda family: family.__name__)
def test_imports_nothing_but_torch_and_what_it_needs(family):
    """So that a stand-alone script of its source runs elsewhere."""
    needed = {case.needs for case in CASES.values() if case.needs}
    for node in ast.walk(ast.parse(inspect.getsource(family))):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        for name in names:
            root = name.partition(".")[0]
            assert root == "torch" or root in sys.stdlib_module_names | needed or name.startswith("dpbench.cases."), (
                name
            )


@pytest.mark.parametrize("name", NAMES)
def test_the_same_under_a_seed(name):
    first, second = built(name), built(name)
    for (a, p), (b, q) in zip(first.model.state_dict().items(), second.model.state_dict().items(), strict=True):
        assert a == b
        assert torch.equal(p, q)
    for one, other in zip(first.calls, second.calls, strict=True):
        assert all(torch.equal(t, other.batch[key]) for key, t in one.batch.items())


@pytest.mark.parametrize("name", NAMES)
def test_is_small_and_in_float32(name):
    problem = built(name)
    assert 0 < sum(p.numel() for p in problem.model.parameters()) < 2000
    assert {p.dtype for p in problem.model.parameters()} == {torch.float32}
    for call in problem.calls:
        assert size(call.batch) <= 10
        assert all(t.dtype == torch.float32 for t in call.batch.values() if t.is_floating_point())


@pytest.mark.parametrize("name", NAMES)
def test_gives_one_loss_for_each_example(name):
    problem = built(name)
    for number, call in enumerate(problem.calls):
        if size(call.batch) == 0:
            continue
        losses = problem.losses(problem.model, call.batch)
        assert losses.shape == (size(call.batch),)
        assert losses.requires_grad
        assert losses.isfinite().all() or number in NOT_FINITE.get(name, ())


@pytest.mark.parametrize("name", HAS_GRADIENTS)
def test_the_loop_has_finite_norms(name):
    problem = built(name)
    for number in range(len(problem.calls)):
        out = loop(problem, number)
        if number not in NOT_FINITE.get(name, ()):
            assert out.norms.isfinite().all()
            assert all(g.isfinite().all() for g in out.grads.values())


@pytest.mark.parametrize("name", HAS_GRADIENTS)
def test_some_examples_are_clipped_and_some_are_not(name):
    """Where no threshold is given, the median norm is one: positive, and not everyone's."""
    problem = built(name)
    if problem.max_norm is None:
        norms = loop(problem, 0).norms
        assert norms.median() > 0
        assert problem.style == "flat"


@pytest.mark.parametrize("name", NAMES)
def test_norms_by_hand_are_those_of_the_loop(name):
    problem = built(name)
    if problem.norms is not None:
        expected = torch.tensor(problem.norms, dtype=torch.float64)
        torch.testing.assert_close(loop(problem, 0).norms, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", HAS_GRADIENTS)
def test_examples_are_the_batch_s(name):
    """The losses of the loop are those of the batch, so that a gradient of each example exists."""
    problem = built(name)
    if problem.random or problem.native:
        return
    for call in problem.calls:
        model, losses, batch = double(problem.model, problem.losses, call.batch)
        alone = [losses(model, example(batch, i)) for i in range(size(batch))]
        if alone:
            torch.testing.assert_close(losses(model, batch), torch.cat(alone), rtol=1e-9, atol=1e-9, equal_nan=True)


def last_gradients(problem, batch):
    """The loss of the last example in a batch, and its gradients."""
    model, losses, batch = double(problem.model, problem.losses, batch)
    loss = losses(model, batch)[-1]
    found = torch.autograd.grad(loss, [p for p in model.parameters() if p.requires_grad], allow_unused=True)
    return [loss.detach(), *(g for g in found if g is not None)]


@pytest.mark.parametrize("name", MIXED)
def test_what_mixes_examples_does(name):
    """The last example's loss, or its gradient, is another when the other examples are."""
    problem = built(name)
    batch = problem.calls[0].batch
    order = torch.tensor([1, 1, 1, 1])
    others = {
        key: torch.cat([t[order] * 1.5 if t.is_floating_point() else t[order], t[-1:]]) for key, t in batch.items()
    }
    before, after = last_gradients(problem, batch), last_gradients(problem, others)
    assert any(not torch.allclose(a, b, rtol=1e-6, atol=1e-9) for a, b in zip(before, after, strict=True))


def test_other_reasons_to_refuse_are_these():
    assert {name for name in NAMES if CASES[name].refused} - set(MIXED) == REFUSED_FOR_ANOTHER_REASON


@pytest.mark.parametrize("name", ["embedding/max-norm", "normalization/instance-norm-tracking"])
def test_a_forward_that_is_refused_writes_what_the_examples_say_into_the_model(name):
    problem = built(name)
    before = copy.deepcopy(problem.model.state_dict())
    problem.losses(problem.model, problem.calls[0].batch)
    assert any(not torch.equal(t, before[key]) for key, t in problem.model.state_dict().items())


@pytest.mark.parametrize("name", ["inplace/activation-overwritten"])
def test_a_graph_that_is_refused_has_no_gradient_at_all(name):
    problem = built(name)
    loss = problem.losses(problem.model, problem.calls[0].batch).sum()
    with pytest.raises(RuntimeError):
        torch.autograd.grad(loss, list(problem.model.parameters()), allow_unused=True)


def test_reentry_leaves_out_gradients_that_there_are():
    problem = built("autograd/checkpointed-with-reentry-first")
    batch, weight = problem.calls[0].batch, problem.model.block[0].weight
    losses = problem.losses(problem.model, batch)
    assert torch.autograd.grad(losses.sum(), weight, allow_unused=True) == (None,)
    with torch.no_grad():
        weight.mul_(2)
    assert not torch.allclose(problem.losses(problem.model, batch), losses)


def test_a_hook_that_normalises_is_not_linear_in_the_losses():
    problem = built("autograd/hook-that-normalises")
    losses = problem.losses(problem.model, problem.calls[0].batch)
    weight = problem.model.a.weight
    one, other, both = (torch.autograd.grad(losses[i].sum(), weight, retain_graph=True)[0] for i in (0, 1, [0, 1]))
    assert not torch.allclose(both, one + other, rtol=1e-2)
