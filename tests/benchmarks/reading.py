"""How long results take to be read: the start of the commands that show them, and 100 000 records.

Run: ``make reading``. It keeps what it finds in ``results/reference/reading.md``.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from dpbench.checksum import sealed, unsealed
from dpbench.records import Cell, Metric, Round, Workload, to_json
from dpbench.reporting.columns import aligned
from dpbench.reporting.palette import KNOWN
from dpbench.results import Header, header_line
from dpbench.state import State
from tests.records_for_tests import ENVIRONMENT, record

REFERENCE = Path("results/reference")
RECORDS, ROUNDS, SAMPLES = 100_000, 6, 4
LONGEST = 2500
"""Bytes of a record."""

STATE = State(others=0.012, load=1.25, mhz=2900.5)

COMMAND = "from dpbench.cli import main; main()"
READ = "from dpbench.results import read; results = read(sys.argv[1])"
ROWS = "from dpbench.rows import rows; print(len(rows(results)))"
LOAD = "import dpbench; print(dpbench.load(sys.argv[1]).shape)"


def write(path: Path, number: int) -> int:
    """A results file of so many cells, all implementations on one batch after another; its longest record."""
    cells = [
        Cell(name, Workload(model="transformers:gpt2", batch=1 + batch, seq_len=128, threads=1))
        for batch in range(1 + number // len(KNOWN))
        for name in KNOWN
    ][:number]
    header = Header(
        command="dpbench run made-up",
        suite="made-up",
        environment=ENVIRONMENT,
        cells=tuple(cells),
        started="2030-01-02",
    )
    at = tuple(tuple(0.25 + i * 0.098765 for i in range(SAMPLES)) for _ in range(ROUNDS))
    like = replace(
        record(seconds=(), memory=2.5e9),
        environment=ENVIRONMENT,
        rounds=tuple(Round(started=1.9e9 + i, warm_up=3, settled=True, state=STATE) for i in range(ROUNDS)),
    )
    like.metrics["step_seconds"] = Metric("s", (), at)
    value = json.loads(unsealed(to_json(like, ENVIRONMENT).encode()))
    draw, longest = random.Random(0), 0
    with path.open("w", encoding="utf-8") as file:
        file.write(header_line(header) + "\n")
        for cell in cells:
            value["cell"]["implementation"] = cell.implementation
            value["cell"]["workload"] |= {"batch": cell.workload.batch, "seq_len": 128, "threads": 1}
            value["metrics"]["step_seconds"]["samples"] = [
                [0.1 * draw.lognormvariate(0, 0.02) for _ in range(SAMPLES)] for _ in range(ROUNDS)
            ]
            line = sealed(json.dumps(value, separators=(",", ":")))
            longest = max(longest, len(line))
            file.write(line + "\n")
    return longest


def seconds(code: str, arguments: Sequence[str | Path], times: int) -> str:
    """Processor time of a fresh process from its start to its end: of several, the median."""
    taken = []
    for _ in range(times):
        start = used()
        subprocess.run([sys.executable, "-c", f"import sys; {code}", *arguments], check=True, stdout=subprocess.DEVNULL)
        taken.append(used() - start)
    return f"{median(taken):.2f} s"


def used() -> float:
    """Of all processes that were waited for, for themselves and in the system."""
    all_ = resource.getrusage(resource.RUSAGE_CHILDREN)
    return all_.ru_utime + all_.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        small, large = Path(directory) / "small.jsonl", Path(directory) / "large.jsonl"
        write(small, 24)
        longest = write(large, RECORDS)
        if longest > LONGEST:
            raise SystemExit(f"records are as long as {longest} bytes, expected {LONGEST} at most: take fewer SAMPLES")
        table = [["a fresh process", "24 records", f"{RECORDS} records"]]
        for name, code, arguments in (
            ("dpbench --help", COMMAND, ["--help"]),
            ("read into Results", READ, []),
            ("and into rows", f"{READ}; {ROWS}", []),
            ("dpbench table", COMMAND, ["table"]),
            ("dpbench show", COMMAND, ["show"]),
            ("dpbench.load, a DataFrame of all columns", LOAD, []),
        ):
            files = [] if arguments == ["--help"] else [small, large]
            line = [seconds(code, [*arguments, file], 7 if file == small else 3) for file in files]
            table.append([name, *(line or [seconds(code, arguments, 7), ""])])
            print(table[-1], file=sys.stderr)
    said = [
        "# Times of reading results",
        "",
        "Made by `make reading`, on two shared cores: processor time, which is what a command takes where nothing",
        f"else runs. Records of up to {longest} bytes, with {ROUNDS} rounds of {SAMPLES} samples: `show` takes an",
        "interval of each one's ratio to the baseline, and `load` one of its time as well.",
        "",
        *(f"    {line}" for line in aligned(table)),
    ]
    print("\n".join(said))
    (REFERENCE / "reading.md").write_text("\n".join(said) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
