"""What a results file holds: JSON lines, one header and then one record for each finished cell."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic_core import SchemaValidator, core_schema

from dpbench.checksum import sealed, unsealed
from dpbench.decoding import decode
from dpbench.errors import DpbenchError
from dpbench.garbage import uncollected
from dpbench.records import ADDED_ONLY, SCHEMA, Cell, Record, check_schema, from_json
from dpbench.validator import validator

DIRECTORY = Path("results")
MOST = 1e18
"""Of what is measured, in any unit: an exbyte."""
BEGINNING = b'{"dpbench":'
"""Of every results file."""


class NotBegun(DpbenchError):
    """A crash left a file without a whole header: nothing was measured in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of a results file: what was going to be run, where and how."""

    command: str
    suite: str
    environment: dict[str, Any]
    cells: tuple[Cell, ...]
    """Every cell of the run, in order, so that a file says what is missing from it."""
    started: str
    """ISO 8601, UTC."""
    run: str = ""
    """The same in files that are sides of one run, whose timings were taken in turns; empty for a run of its own."""


@dataclass(frozen=True, slots=True)
class Results:
    """What a results file holds."""

    path: Path
    header: Header
    records: tuple[Record, ...]
    """In the order of writing; of a cell that was run twice, the later record."""
    torn: str = ""
    """Says so if the last line is incomplete; empty otherwise."""
    whole_bytes: int = 0
    """Length of the file up to the end of the last whole line."""
    lines: tuple[int, ...] = ()
    """Where each record stands in the file, counted from 1."""
    schema: int = SCHEMA
    """That it was written in."""

    @property
    def missing(self) -> tuple[Cell, ...]:
        """The cells that have no record."""
        done = {r.cell for r in self.records}
        return tuple(c for c in self.header.cells if c not in done)

    @property
    def replaced(self) -> int:
        """Records that a later one of the same cell stands for."""
        return self.lines[-1] - 1 - len(self.records) if self.lines else 0


@uncollected()
def read(path: Path | str) -> Results:
    """Read a results file; an incomplete last line is left out and reported in ``torn``.

    Raises:
        NotBegun: a crash left it without a whole header.
        DpbenchError: not there, not ours, from a newer dpbench, or corrupt before the last line.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        # A device or a pipe may never end.
        raise DpbenchError(f"cannot read {path}: not a regular file; expected results of dpbench, a .jsonl file")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DpbenchError(f"cannot read {path}: {error.strerror}") from None
    return parsed(path, content)


def parsed(path: Path, content: bytes) -> Results:
    """The same of what was read from ``path``."""
    lines = content.split(b"\n")
    tail = lines.pop()
    if not tail and len(lines) > 1 and lines[-1].endswith(b"\0"):
        # Room that a crash left unwritten.
        tail = lines.pop() + b"\n"
    if not lines:
        raise _not_begun(path, tail) if _is_beginning(tail) else _not_ours(path, tail)
    header, schema = _read_header(path, lines[0])
    record_of = _reader(header.environment)
    found: dict[Cell, tuple[int, Record]] = {}
    for number, line in enumerate(lines[1:], start=2):
        try:
            record = record_of(line)
            _refuse_no_measurement(record)
        except (DpbenchError, UnicodeDecodeError) as error:
            raise DpbenchError(
                f"{path}, line {number}: {error}. Everything before that line can be kept by: "
                f"head -n {number - 1} {path} > NEWFILE"
            ) from None
        found.pop(record.cell, None)
        found[record.cell] = number, record
    torn = ""
    if tail:
        torn = (
            f"{path}, line {len(lines) + 1}: incomplete ({len(tail)} bytes), as a crash leaves it; "
            f"the {len(lines) - 1} records before it are whole"
        )
    numbers, records = zip(*found.values(), strict=True) if found else ((), ())
    return Results(path, header, records, torn, len(content) - len(tail), numbers, schema)


def _refuse_no_measurement(record: Record) -> None:
    """Raise for samples that nothing measures: a file that was changed by hand would be divided by them."""
    for name, metric in record.metrics.items():
        for sample in (sample for some in metric.samples for sample in some):
            if not 0 <= sample < MOST or (metric.unit == "s" and not sample):
                expected = f"{metric.unit} {'above' if metric.unit == 's' else 'at least'} 0 and below {MOST:g}"
                raise DpbenchError(f"{name} of {record.cell.implementation} holds {sample:g}, expected {expected}")


def header_line(header: Header) -> str:
    """The first line of a file."""
    return sealed(json.dumps({"dpbench": SCHEMA, "kind": "header", **asdict(header)}, separators=(",", ":")))


def latest(directory: Path | str = DIRECTORY) -> Path:
    """The results file in ``directory`` that was written to last."""
    files = sorted(Path(directory).glob("*.jsonl"), key=lambda p: (p.stat().st_mtime_ns, p.name))
    if not files:
        raise DpbenchError(
            f"no results in {directory}/, expected *.jsonl there; make some with: dpbench run quickstart"
        )
    return files[-1]


def _is_beginning(line: bytes) -> bool:
    """Whether a file that is written header first may have had no more than this; room left unwritten is zeros."""
    written = line.rstrip(b"\0")
    return written.startswith(BEGINNING) or BEGINNING.startswith(written)


def _not_begun(path: Path, line: bytes) -> NotBegun:
    return NotBegun(
        f"{path} has no whole header ({len(line)} bytes), as a crash leaves a file that was just begun; nothing was "
        "measured in it: remove it, and start that run anew"
    )


def _not_ours(path: Path, line: bytes) -> DpbenchError:
    return DpbenchError(
        f"{path}, line 1: not a results file of dpbench: got {line[:60].decode(errors='replace')!r}, "
        'expected a header {"dpbench": 1, "kind": "header", ...}'
    )


def _reader(environment: Mapping[str, Any]) -> Callable[[bytes], Record]:
    """:func:`from_json` for the many records of one file."""
    mapping = core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())
    shared = core_schema.with_default_schema(mapping, default_factory=lambda: environment)
    readable = core_schema.literal_schema([*range(ADDED_ONLY, SCHEMA + 1)])
    schema = core_schema.no_info_after_validator_function(lambda _: SCHEMA, readable)
    today = validator(Record, {"schema": schema, "environment": shared})

    def read(line: bytes) -> Record:
        try:
            record: Record = today.validate_json(unsealed(line))
        except ValueError:
            # An older schema, a number that JSON has no word for, or a mistake that has to be told.
            return from_json(line.decode(), environment)
        return record

    return read


def _header_of(schema: int) -> SchemaValidator:
    said = {"dpbench": core_schema.literal_schema([schema]), "kind": core_schema.literal_schema(["header"])}
    return validator(Header, said)


def _read_header(path: Path, line: bytes) -> tuple[Header, int]:
    """The first line, and its schema."""
    try:
        # A header is in every schema what it was in the first.
        for schema in range(SCHEMA, 0, -1):
            if line.startswith(b'{"dpbench":%d,' % schema):
                return _header_of(schema).validate_json(unsealed(line)), schema
    except ValueError:
        pass
    except DpbenchError as error:
        raise DpbenchError(f"{path}, line 1: {error}") from None
    try:
        value = json.loads(unsealed(line))
    except ValueError:
        raise _not_ours(path, line) from None
    except DpbenchError as error:
        raise DpbenchError(f"{path}, line 1: {error}") from None
    if not isinstance(value, dict) or value.pop("kind", None) != "header" or "dpbench" not in value:
        raise _not_ours(path, line)
    try:
        check_schema(schema := value.pop("dpbench"))
        header: Header = decode(Header, value, "header")
    except DpbenchError as error:
        raise DpbenchError(f"{path}, line 1: {error}") from None
    return header, schema
