import pytest
import torch
from torch import nn

from dpbench.errors import DpbenchError, Refused
from dpbench.models.normalization import group_norm, normalize


def network():
    return nn.Sequential(nn.Conv2d(3, 48, 3), nn.Sequential(nn.BatchNorm2d(48, eps=1e-3), nn.ReLU()), nn.Flatten())


def test_every_batch_norm_is_replaced():
    model = network()
    normalize(model, "group")
    assert not any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())
    norm = model[1][0]
    assert (type(norm), norm.num_groups, norm.num_channels, norm.eps) == (nn.GroupNorm, 24, 48, 1e-3)


@pytest.mark.parametrize(("channels", "groups"), [(64, 32), (48, 24), (37, 1), (6, 6), (1, 1), (66, 22)])
def test_groups_are_the_largest_divisor_up_to_32(channels, groups):
    assert group_norm(nn.BatchNorm2d(channels)).num_groups == groups


def test_without_affine_parameters_there_are_none_after():
    assert not list(group_norm(nn.BatchNorm1d(4, affine=False)).parameters())


def test_a_batch_norm_with_an_activation_keeps_it():
    layers = pytest.importorskip("timm.layers")
    model = nn.Sequential(layers.BatchNormAct2d(8, act_layer=nn.ReLU))
    normalize(model, "group")
    x = torch.randn(2, 8, 3, 3)
    assert torch.allclose(model(x), nn.functional.group_norm(x, 8).relu(), atol=1e-6)


def test_batch_norm_is_refused_by_name_with_the_remedy():
    with pytest.raises(Refused, match=r"1.0 \(a BatchNorm2d\) is in training mode: it mixes.*--norm group"):
        normalize(network(), None)


def test_batch_norm_in_eval_mode_mixes_nothing_and_stays():
    model = network().eval()
    normalize(model, None)
    assert isinstance(model[1][0], nn.BatchNorm2d)


def test_a_model_without_batch_norm_is_left_alone():
    model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    for norm in (None, "group"):
        normalize(model, norm)
    assert [type(m) for m in model] == [nn.Linear, nn.LayerNorm]


def test_an_unknown_norm_is_named():
    with pytest.raises(DpbenchError, match=r"unknown norm 'grup'. Did you mean group\?"):
        normalize(network(), "grup")
