import torch
from torch.nn import functional as F

from dpbench.ops.normalization import Scale


def test_a_scale_is_found_in_the_precision_of_its_output_where_the_input_is_narrower():
    """CUDA's autocast normalises bfloat16 in float32, which bfloat16 would lose."""
    torch.manual_seed(0)
    x, ds = torch.randn(5, 4, 16).bfloat16(), torch.randn(5, 4, 16)
    use = Scale(torch.ones(16), x, (-1,), lambda x: F.layer_norm(x, (16,)), "F.layer_norm")
    found = use.instantiate(ds)
    expected = (ds.double() * F.layer_norm(x.double(), (16,))).sum(1)
    assert found.dtype == torch.float32
    assert torch.allclose(found.double(), expected, rtol=1e-5, atol=1e-5)
