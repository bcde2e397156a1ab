import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from dpbench.checkpoints import Lasting, checkpointed, contexts, inside, reentrant
from dpbench.double import StayDouble
from dpbench.dropout import NoDropout
from dpbench.recorder import Recorder
from tests.promise import IMPLEMENTATIONS, batch_of, refusals, squares
from tests.zoo import L, Net


def test_modes_that_change_what_is_computed_hold_in_every_recomputation():
    seen = []

    def narrowed(x):
        y = x.float()
        seen.append(y.dtype)
        return (y * y).sin()

    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    with StayDouble():
        out = checkpointed(narrowed, x).sum()
    first, second = (torch.autograd.grad(out, x, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
    assert seen == [torch.float64] * 3


def test_what_is_dropped_in_the_recomputation_is_what_was_dropped_before():
    x = torch.ones(50, requires_grad=True)
    with NoDropout():
        out = checkpointed(lambda x: nn.functional.dropout(x, 0.5).sin().cos(), x)
    (found,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(found, torch.autograd.grad(x.sin().cos().sum(), x)[0])


def test_modes_that_only_watch_are_not_entered_again():
    assert not issubclass(Recorder, Lasting)
    with NoDropout(), torch.overrides.BaseTorchFunctionMode(), StayDouble():
        again = contexts()[1]
    with again:
        entered = torch.overrides._get_current_function_mode_stack()
        assert [type(mode) for mode in entered] == [NoDropout, StayDouble]
    assert not torch.overrides._get_current_function_mode_stack()


@pytest.mark.parametrize("options", [{}, {"context_fn": contexts}])
def test_a_forward_knows_whether_it_will_be_computed_again(options):
    seen = []

    def forward(x):
        seen.append(inside())
        return x.sin()

    x = torch.ones(2, requires_grad=True)
    checkpoint(forward, x, use_reentrant=False, **options)
    forward(x)
    with torch.autograd.graph.save_on_cpu():
        forward(x)
    assert seen == [True, False, False]


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_reentrant_checkpoint_on_an_input_without_gradient_freezes_nothing_silently(name):
    net = Net(lambda n, x: n.o(checkpoint(n.l, x, use_reentrant=True)), l=L(4, 4), o=L(4, 3))
    assert refusals(name, net, squares, [batch_of(5, 4)], "reentrant gradient checkpointing") == 1


def test_what_runs_without_gradients_is_in_no_reentrant_checkpoint():
    seen = []
    checkpoint(lambda x: seen.append(reentrant()) or x, torch.ones(2), use_reentrant=True)
    checkpoint(lambda x: seen.append(reentrant()) or x, torch.ones(2), use_reentrant=False)
    with torch.no_grad():
        seen.append(reentrant())
    assert seen == [True, False, False]


def test_a_mode_knows_whether_a_checkpoint_will_forget_it():
    seen, mode = [], NoDropout()

    def forward(x):
        seen.append(mode.is_forgotten())
        return x.sin()

    x = torch.ones(2, requires_grad=True)
    with mode:
        forward(x)
        checkpoint(forward, x, use_reentrant=False)
        own = checkpointed(forward, x)
    assert seen == [False, True, False]
    own.sum().backward()
    assert seen == [False, True, False, False]
    assert not mode.kept
