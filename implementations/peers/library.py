"""A library that is run as itself: its version, where to get it, and its refusals in its own words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from torch import Tensor, nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from dpbench.clipping import Clip
from dpbench.errors import DpbenchError, Refused
from dpbench.faults import of_machine
from dpbench.interface import Output

READS_VALUES = DataDependentOutputException, DynamicOutputShapeException
"""What fake tensors raise where their values are asked for."""


@dataclass(frozen=True, slots=True)
class Library:
    """``name`` as its authors write it, the ``module`` to import, and the ``remedy`` where it is not there."""

    name: str
    module: str
    remedy: str

    @property
    def version(self) -> str | None:
        """Its version, found without importing it; None where it is not there."""
        spec = find_spec(self.module)
        if spec is None:
            return None
        try:
            return version(self.module)
        except PackageNotFoundError:
            # On the path without being installed, as a checkout is.
            text = Path(spec.origin).read_text() if spec.origin else ""
            found = re.search(r"^__version__\s*=\s*['\"](.+?)['\"]", text, flags=re.M)
            return found[1] if found else "of unknown version"

    @property
    def needs(self) -> str:
        """What is missing and how to get it; empty where it is there."""
        return f"{self.module}: {self.remedy}" if self.version is None else ""

    def titled(self, mode: str) -> str:
        """The title of one way to run it, with its version or what it needs."""
        if self.needs:
            return f"{self.name}, {mode} (needs {self.needs})"
        return f"{self.name} {self.version}, {mode}"

    def load(self) -> ModuleType:
        """The library.

        Raises:
            DpbenchError: it is not there, or cannot be imported.
        """
        if self.version is None:
            raise DpbenchError(f"{self.module} is not installed, and this runs it as itself. Get it: {self.remedy}")
        try:
            return import_module(self.module)
        except Exception as error:
            raise DpbenchError(
                f"{self.module} {self.version} is there and cannot be imported: {said(error)}. Install versions of it "
                "and of what it imports that fit together."
            ) from error

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Whatever it raises is its refusal, but for what the machine failed in and wanting values in a trace."""
        try:
            yield
        except DpbenchError:
            raise
        except Exception as error:
            if of_machine(error) or isinstance(error, READS_VALUES):
                raise
            raise Refused(f"{self.name} {self.version} cannot run this: {said(error)}") from error

    def refuse_other_clipping(self, clip: Clip, stability: float) -> None:
        """Raise unless ``clip`` is what is built into it: C_i = min(1, R / (||g_i|| + s)) with its own s."""
        if clip.function != "abadi" or clip.stability != stability:
            raise Refused(
                f"{self.name} clips by min(1, R / (||g_i|| + {stability:g})) and not otherwise; asked for was {clip}. "
                f"Use function 'abadi' with stability {stability:g}, or an implementation that is not a library's."
            )


def said(error: BaseException) -> str:
    """The first line of what an exception says, or of the first one that it collects."""
    inner = error.args[0] if error.args else None
    if isinstance(inner, list) and inner and isinstance(inner[0], BaseException):
        return said(inner[0])
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}".removesuffix(": ")


def given(
    parameters: Mapping[str, nn.Parameter], sums: Mapping[str, Tensor | None], norms: Tensor | None, losses: Tensor
) -> Output:
    """A step's output with the gradients that the library gave; the other parameters it has frozen."""
    grads = {}
    for name, parameter in parameters.items():
        parameter.grad = sums.get(name)
        if parameter.grad is not None:
            grads[name] = parameter.grad
    return Output(grads, norms, losses.detach())
