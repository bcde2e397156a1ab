"""An implementation that is verified: what it is, and what it declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpbench.conformance.checks import OWN, kit
from dpbench.conformance.expected import Expected, Known, declaration, declared
from dpbench.conformance.verdict import Ruling, Verdict
from dpbench.errors import DpbenchError
from dpbench.interface import Supports
from dpbench.registry import load, source_file, source_hash


@dataclass(frozen=True, slots=True)
class Candidate:
    """An implementation by its name."""

    name: str
    title: str
    source: str
    """Hash of its source."""
    expected: Expected
    path: Path
    """The file that declares it, or would."""

    @classmethod
    def of(cls, name: str) -> Candidate:
        """By its name; raises DpbenchError where its file declares what is no check, or its library is missing."""
        if needs := getattr(load(name), "NEEDS", ""):
            raise DpbenchError(f"{name} needs {needs}")
        source = source_file(name)
        own, path = declared(source)
        own.check_names([*kit(), *(check for check, _, _ in OWN)], str(path))
        expected = Expected((*own.known, *_unsupported(load(name).SUPPORTS)))
        beside = path or (source or Path(name)).with_suffix(".toml")
        return cls(name, load(name).TITLE, source_hash(name), expected, beside)

    def surprise(self, verdict: Verdict) -> str:
        """How a verdict differs from what is declared."""
        return self.expected.surprise(verdict)

    def is_worse(self, verdict: Verdict) -> bool:
        """Whether it is worse than declared."""
        known = self.expected.of(verdict.check)
        return verdict.ruling.worse_than(known.ruling if known else Ruling.RIGHT)

    def declare(self, verdicts: Sequence[Verdict]) -> Path:
        """Write down what was found; the file's path."""
        self.path.write_text(declaration(verdicts), encoding="utf-8")
        return self.path


def _unsupported(supports: Supports) -> Iterator[Known]:
    """What an implementation declares by its ``SUPPORTS``."""
    if not supports.units:
        for pattern in ("batch/*unit*", "gradient/unit"):
            yield Known(pattern, Ruling.REFUSES, "its SUPPORTS says units=False")
    if not supports.groups:
        for pattern in ("threshold/per-layer", "threshold/group*"):
            yield Known(pattern, Ruling.REFUSES, "its SUPPORTS says groups=False")
