"""Errors of the machine, which say nothing about what was asked of it: no memory is left, or a GPU failed."""

from __future__ import annotations

OUT_OF_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "cannot allocate memory",
    "std::bad_alloc",
    "could not create a memory object",
    "cublas_status_alloc_failed",
    "cudnn_status_alloc_failed",
)
"""What torch, its allocator and oneDNN say on a CPU, where running out is a plain RuntimeError; and the libraries of
CUDA where they find no room beside torch's own."""

_OF_GPU = ("cuda error", "cuda driver error", "cudnn error", "nvrtc error")


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether no memory was left."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError | OSError) and _says(error, OUT_OF_MEMORY)


def of_machine(error: BaseException) -> bool:
    """Whether memory ran out or a GPU failed, so that it is no refusal of whoever met it."""
    return ran_out_of_memory(error) or type(error).__name__ == "AcceleratorError" or _says(error, _OF_GPU)


def _says(error: BaseException, signs: tuple[str, ...]) -> bool:
    text = str(error).lower()
    return any(sign in text for sign in signs)
