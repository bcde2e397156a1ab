from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

from dpbench import precision
from dpbench.ops.spacing import spacing

FLOAT32, TF32 = 2.0**-23, 2.0**-10


def on(kind, dtype=torch.float32):
    """What is asked of a tensor, on a device that need not be here."""
    return SimpleNamespace(dtype=dtype, device=torch.device(kind))


@pytest.fixture(autouse=True)
def flags():
    yield
    torch.backends.fp32_precision = "none"
    precision.allow_tf32(False)


@pytest.mark.parametrize("function", [F.linear, torch.bmm, F.conv2d, torch.lstm])
def test_it_is_that_of_float32_unless_a_gpu_may_multiply_in_tf32(function):
    precision.allow_tf32(False)
    assert spacing(function, on("cuda")) == FLOAT32
    precision.allow_tf32(True)
    assert spacing(function, on("cuda")) == TF32
    assert spacing(function, on("cpu")) == FLOAT32
    assert spacing(function, on("cuda", torch.float64)) == 2.0**-52
    assert spacing(function, on("cuda", torch.bfloat16)) == 2.0**-7


def test_convolutions_have_a_flag_of_their_own():
    precision.allow_tf32(False)
    torch.backends.cudnn.conv.fp32_precision = "tf32"
    assert spacing(F.conv2d, on("cuda")) == TF32
    assert spacing(F.linear, on("cuda")) == FLOAT32


@pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="newer torch alone has this flag")
def test_fp32_is_fp32_whatever_was_allowed_before_and_however():
    torch.backends.fp32_precision = "tf32"
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    precision.allow_tf32(False)
    parts = torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn
    assert [part.fp32_precision for part in parts] == ["ieee"] * 3
    assert not torch.backends.cuda.matmul.allow_tf32
