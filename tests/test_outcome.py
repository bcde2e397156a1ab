import pytest
import torch

from dpbench.errors import DpbenchError, Refused
from dpbench.outcome import Ending, of_ending, of_exception
from dpbench.records import Outcome

DEFAULT_ALLOCATOR = (
    "[enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
    "allocate 4000000000000 bytes. Error code 12 (Cannot allocate memory)"
)
MAC = "[enforce fail at alloc_cpu.cpp:64] . DefaultCPUAllocator: not enough memory: you tried to allocate 40 bytes."


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(DEFAULT_ALLOCATOR),
        RuntimeError(MAC),
        RuntimeError("could not create a memory object"),
        RuntimeError("std::bad_alloc"),
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ..."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        OSError(12, "Cannot allocate memory"),
    ],
)
def test_running_out_of_memory_is_recognised_in_every_form(error):
    outcome, reason = of_exception(error)
    assert outcome is Outcome.OUT_OF_MEMORY
    assert reason


def test_a_real_allocation_that_is_too_large_is_out_of_memory():
    with pytest.raises(RuntimeError) as error:
        torch.empty(1 << 45, dtype=torch.float64)
    outcome, reason = of_exception(error.value)
    assert outcome is Outcome.OUT_OF_MEMORY
    assert "allocate" in reason


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (Refused("one factor per example"), Outcome.REFUSED, "one factor per example"),
        (DpbenchError("a norm is not finite"), Outcome.FAILED, "a norm is not finite"),
        (RuntimeError("shapes do not match"), Outcome.FAILED, "RuntimeError: shapes do not match"),
        (ValueError("out of memory cards"), Outcome.FAILED, "ValueError: out of memory cards"),
        (KeyError(), Outcome.FAILED, "KeyError"),
        (ValueError("two\n   lines"), Outcome.FAILED, "ValueError: two lines"),
    ],
)
def test_other_exceptions_keep_their_reason_on_one_line(error, outcome, reason):
    assert of_exception(error) == (outcome, reason)


@pytest.mark.parametrize(
    ("ending", "outcome", "reason"),
    [
        (Ending(-9, "", 1), Outcome.OUT_OF_MEMORY, "memory"),
        (Ending(-9, "", None), Outcome.OUT_OF_MEMORY, "memory"),
        (Ending(-9, "", 0), Outcome.FAILED, "not by the kernel"),
        (Ending(-11, "it broke"), Outcome.FAILED, "SIGSEGV: it broke"),
        (Ending(-63), Outcome.FAILED, "signal 63"),
        (Ending(3, "at the end"), Outcome.FAILED, "exit status 3: at the end"),
    ],
)
def test_a_process_that_ended_early_is_judged_by_how_it_ended(ending, outcome, reason):
    found = of_ending(ending)
    assert found[0] is outcome
    assert reason in found[1]
