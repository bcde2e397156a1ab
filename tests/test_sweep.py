"""Whole runs, in real processes that really crash, are killed, hang and run out of memory."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpbench import store
from dpbench.coverage import Coverage
from dpbench.errors import DpbenchError
from dpbench.forkserver import ForkServer
from dpbench.records import Cell, Outcome, Record, from_json
from dpbench.results import read
from dpbench.runner import Progress
from dpbench.sweep import Started, asked, cells_of, resumed, sweep

MISBEHAVING = Path(__file__).parent / "misbehaving"
MODEL = "synthetic:mlp(width=8,depth=2)"


def bad(name):
    return str(MISBEHAVING / f"{name}.py")


def suite_of(*implementations, batch=(4,), **times):
    axes = {"model": MODEL, "batch": list(batch), "implementation": list(implementations), "threads": 1}
    return asked(None, axes, {"rounds": 1, "budget_s": 0.01, "timeout_s": 2.0, **times})


def run(tmp_path, suite, **options):
    events = list(sweep(suite, cells_of(suite), directory=tmp_path, **options))
    assert isinstance(events[0], Started)
    return events[0], recorded(events)


def recorded(events):
    return {Path(e.cell.implementation).stem: e for e in events if isinstance(e, Record)}


@pytest.fixture(scope="module")
def server():
    """One for all runs: to start one takes longer than most of them."""
    with ForkServer() as started:
        yield started


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """One run with every misfortune in it."""
    names = sorted(p.stem for p in MISBEHAVING.glob("*.py") if p.stem != "__init__")
    return run(tmp_path_factory.mktemp("results"), suite_of("bk", *map(bad, names)))


@pytest.mark.parametrize(
    ("name", "outcome", "reason"),
    [
        ("nonprivate", Outcome.OK, ""),
        ("bk", Outcome.OK, ""),
        ("crashes", Outcome.FAILED, "SIGSEGV"),
        ("late", Outcome.FAILED, "SIGABRT"),
        ("raises", Outcome.FAILED, "KeyError"),
        ("hangs", Outcome.TIMED_OUT, "2 s"),
        ("hungry", Outcome.OUT_OF_MEMORY, ""),
        ("wrong", Outcome.WRONG, "1e-06"),
        ("refuses", Outcome.REFUSED, "not to my taste"),
    ],
)
def test_every_misfortune_is_an_outcome_and_the_run_goes_on(everything, name, outcome, reason):
    record = everything[1][name]
    assert record.outcome is outcome
    assert reason in record.reason


def test_a_kill_is_never_taken_for_a_success(everything):
    """Memory or failure, depending on whether the kernel tells how many it killed."""
    assert everything[1]["killed"].outcome in (Outcome.FAILED, Outcome.OUT_OF_MEMORY)


def test_a_time_out_leaves_no_process_behind(everything):
    commands = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if os.access(p, os.R_OK)]
    assert not [c for c in commands if b"600.25" in c]


def test_what_went_well_is_complete(everything):
    started, records = everything
    record = records["bk"]
    assert record.parity.passed
    assert record.parity.precision == "float64"
    assert record.coverage == Coverage(144, 144, {}, {"ghost": 2 * 8 * 8, "vector": 2 * 8})
    assert {"step_seconds", "peak_live", "peak_process", "resident"} <= set(record.metrics)
    assert record.facts["parameters"] > 0
    assert record.source
    assert record.environment["machine"]["id"] == started.environment["machine"]["id"]


def test_every_record_is_in_the_file(everything):
    started, records = everything
    results = read(started.path)
    assert not results.missing
    assert list(results.records) == list(records.values())


def test_resuming_runs_only_what_is_missing_and_what_was_torn(tmp_path, server):
    suite = suite_of("bk", batch=(4, 5))
    started, _ = run(tmp_path, suite, server=server)
    lines = started.path.read_bytes().splitlines(keepends=True)
    started.path.write_bytes(b"".join(lines[:-2]) + lines[-2][:100])
    said = []
    again, records = run(tmp_path, suite, resume=started.path, say=said.append, server=server)
    assert len(again.done) == 2
    assert {r.cell for r in records.values()} == set(again.cells[2:])
    assert not read(started.path).missing
    assert "incomplete" in said[0]
    assert read(started.path).records[0].metrics == from_json(lines[1].decode()).metrics


def test_a_file_alone_says_what_to_resume(tmp_path, server):
    started, _ = run(tmp_path, suite_of("bk", rounds=2), server=server)
    suite, cells = resumed(started.path)
    assert tuple(cells) == started.cells
    assert (suite.rounds, suite.budget_s, suite.timeout_s) == (2, 0.01, 2.0)


@pytest.mark.parametrize("recheck", [False, True])
def test_a_gradient_is_checked_again_on_resuming_only_if_asked(tmp_path, server, recheck):
    suite = suite_of("bk", batch=(4, 5))
    started, _ = run(tmp_path, suite, server=server)
    lines = started.path.read_bytes().splitlines(keepends=True)
    started.path.write_bytes(b"".join(line for line in lines if b'"error"' not in line or b'"batch":4' in line))
    events = list(sweep(suite, cells_of(suite), resume=started.path, recheck=recheck, server=server))
    assert {c.workload.batch for c in (r.cell for r in recorded(events).values())} == {5}
    assert any(isinstance(e, Progress) and e.phase == "gradient" for e in events) is recheck
    assert all(record.parity is not None for record in recorded(events).values())


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"model": "synthetic:mpl"}, "mlp"),
        ({"device": "cuda:7"}, "cuda:7"),
        ({"device": "gpu"}, "gpu"),
        ({"precision": "tf32"}, "fp32"),
        ({"logical_batch": 3}, "batch is 4 and logical_batch 3; expected physical batches that add up to the logical"),
        ({"batch": "max"}, "batch is 'max' on cpu, expected the memory that a step may take there: --memory 4GB"),
        ({"batch": "max", "device": "cuda:7"}, "cuda:7"),
        ({"implementation": "bkk"}, "Did you mean bk"),
        ({"implementation": "nowhere.py"}, "no file nowhere.py"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_written(tmp_path, server, axes, message):
    with pytest.raises(DpbenchError, match=re.escape(message)):
        suite = asked(None, {"model": MODEL, "batch": 4, "implementation": "bk", **axes}, {})
        list(sweep(suite, cells_of(suite), directory=tmp_path, server=server))
    assert not list(tmp_path.iterdir())


def test_the_baseline_is_always_there_to_compare_with():
    cells = cells_of(suite_of("bk", "opacus", batch=(4, 8)), "opacus and B=8")
    assert [c.implementation for c in cells] == ["nonprivate", "opacus"]
    assert {c.workload.batch for c in cells} == {8}


def test_interrupting_ends_everything_and_keeps_what_is_done(tmp_path):
    command = [sys.executable, "-c", "from dpbench.cli import main; main()", "run", "--model", MODEL, "--batch", "4"]
    command += ["--impl", f"{bad('wrong')},{bad('hangs')}", "--timeout", "60", "--results", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # The wrong one is recorded as soon as the parity child that hangs in the other is over: give it none.
    deadline = time.monotonic() + 60
    while not (found := list(tmp_path.glob("*.jsonl"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"dpbench run --resume {found[0]}" in error
    assert "Traceback" not in error
    assert len(store.read(found[0]).header.cells) == 3
    time.sleep(0.2)
    commands = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if os.access(p, os.R_OK)]
    assert not [c for c in commands if b"600.25" in c]


def test_records_are_json_that_can_be_read_back(everything):
    started, _ = everything
    for line in started.path.read_text().splitlines()[1:]:
        assert from_json(line).cell in set(started.cells)
        assert json.loads(line)["schema"] == 4


def test_cells_have_the_baseline_first():
    cells = cells_of(suite_of("bk"))
    assert cells[0] == Cell("nonprivate", cells[0].workload)


def test_who_crashes_in_the_middle_of_a_round_was_right_and_has_its_memory(everything):
    record = everything[1]["late"]
    assert record.parity.passed
    assert "peak_live" in record.metrics
    assert "step_seconds" not in record.metrics


def test_each_runs_at_the_largest_batch_that_fits_into_the_memory(tmp_path, server):
    norms = str(MISBEHAVING / "refuses.py")
    suite = suite_of("bk", "opacus", norms, batch=("max",), memory="50kB", timeout_s=60.0)
    started, records = run(tmp_path, suite, server=server)
    outcomes = {name: record.outcome for name, record in records.items()}
    assert outcomes == {"nonprivate": "ok", "bk": "ok", "opacus": "ok", "refuses": "refused"}
    assert records["nonprivate"].largest >= records["bk"].largest > records["opacus"].largest > 0
    for name in ("nonprivate", "bk", "opacus"):
        metrics = records[name].metrics
        need = sum(metrics[m].samples[0][0] for m in ("resident", "peak_live"))
        assert need <= 50_000 * 1.05
    again, cells = resumed(started.path)
    assert (again.memory, tuple(cells)) == ("50kB", started.cells)


def test_a_logical_batch_runs_at_the_largest_physical_one(tmp_path, server):
    axes = {"model": MODEL, "batch": "max", "logical_batch": [8, 100], "implementation": "opacus", "threads": 1}
    suite = asked(None, axes, {"rounds": 1, "budget_s": 0.01, "memory": "50kB"})
    events = list(sweep(suite, cells_of(suite), directory=tmp_path, server=server))
    found = {(r.cell.implementation, r.examples): r.largest for r in events if isinstance(r, Record)}
    assert found["opacus", 8] == 8
    assert 8 < found["opacus", 100] < found["nonprivate", 100] <= 100


def test_where_not_one_example_fits_the_memory_ran_out(tmp_path, server):
    _, records = run(tmp_path, suite_of("bk", batch=("max",), memory="1kB"), server=server)
    assert records["nonprivate"].outcome is Outcome.OUT_OF_MEMORY
    assert "one example needs" in records["nonprivate"].reason
    assert records["nonprivate"].metrics == {}
