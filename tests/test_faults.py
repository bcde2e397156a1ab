import pytest
import torch

from dpbench.errors import Refused
from dpbench.faults import of_machine, ran_out_of_memory


@pytest.mark.parametrize(
    ("error", "out_of_memory", "machine"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), True, True),
        (MemoryError(), True, True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True, True),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False, True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), False, True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False, False),
        (Refused("the batch is out of memory of mine"), False, False),
        (ValueError("cannot allocate memory"), False, False),
    ],
)
def test_what_the_machine_failed_in_is_told_from_what_was_asked_of_it(error, out_of_memory, machine):
    assert ran_out_of_memory(error) is out_of_memory
    assert of_machine(error) is machine


@pytest.mark.skipif(not hasattr(torch, "AcceleratorError"), reason="newer torch alone has this error")
def test_torchs_own_error_of_a_device_is_one():
    assert of_machine(torch.AcceleratorError("device-side assert triggered", 710))
