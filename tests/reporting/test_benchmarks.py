import json
import subprocess
import sys
from dataclasses import replace

import pytest
from pytest_benchmark.stats import Stats

from dpbench import results, store
from dpbench.errors import DpbenchError, EmptySelection
from dpbench.records import Cell, Metric, Outcome
from dpbench.reporting.benchmarks import exported, extra_info, named
from dpbench.rows import rows
from tests.records_for_tests import ENVIRONMENT, record, workload, write

SECONDS = ((0.5, 0.25, 0.5), (0.75,))
NAME = "bk[transformers:gpt2 B=8]"


def read(directory, records, suite="ci"):
    return results.read(write(directory, records, suite))


def test_samples_of_all_processes_are_one_benchmark(tmp_path):
    document, left_out = exported([read(tmp_path, [record("bk", seconds=SECONDS, source="f00")])])
    (made,) = document["benchmarks"]
    theirs = Stats()
    for sample in (0.5, 0.25, 0.5, 0.75):
        theirs.update(sample)
    assert made["stats"] == {**theirs.as_dict(), "data": [0.5, 0.25, 0.5, 0.75], "iterations": 1}
    assert (made["name"], made["fullname"], made["group"]) == (NAME, f"ci::{NAME}", "transformers:gpt2 B=8")
    assert left_out == []


def test_extra_info_says_what_is_known_and_nothing_else():
    environment = {
        "machine": {"cpu": "A CPU", "gpus": [{"name": "A GPU"}, {"name": "A GPU"}]},
        "versions": {"torch": "2.14.1"},
        "flags": {"threads": 4},
        "dpbench": {"version": "0.1.0"},
    }
    made = replace(record("bk", seconds=[[0.5]], source="f00"), environment=environment)
    info = extra_info(made, *rows([made]))
    known = {"torch": "2.14.1", "device_name": "A CPU", "threads": 4, "dpbench": "0.1.0", "source": "f00"}
    figures = {"memory": 2e9, "examples_per_s": 16.0, "parity_error": 1e-15, "coverage": 1.0, "device": "cpu"}
    assert (known | figures).items() <= info.items()
    assert not {"seq_len", "reason", "outcome", "file", "speed_relative"} & set(info)
    cuda = replace(made, cell=Cell("bk", workload(device="cuda:1", threads=2)))
    info = extra_info(cuda, *rows([cuda]))
    assert (info["device_name"], info["threads"]) == ("A GPU", 2)
    environment["machine"]["gpus"][0]["name"] = "Another"
    assert "device_name" not in extra_info(cuda, *rows([cuda]))


def test_cells_without_a_speed_are_named_instead(tmp_path):
    untimed = record("opacus")
    records = [
        record("bk"),
        record("vmap", outcome=Outcome.WRONG, reason="norms differ"),
        replace(untimed, metrics={"peak_live": untimed.metrics["peak_live"]}),
        replace(record("ghostclip"), metrics={"step_seconds": Metric("s", ())}),
        replace(record("bk", workload(batch="max")), largest=3),
    ]
    cells = [*(r.cell for r in records), Cell("tf_privacy", workload())]
    with store.create("ci", cells, ENVIRONMENT, "made up", tmp_path) as writer:
        for one in records:
            writer.append(one)
    document, left_out = exported([results.read(writer.path)])
    assert [b["name"] for b in document["benchmarks"]] == [NAME]
    on = "transformers:gpt2 B=8"
    assert left_out == [
        f"ci::vmap[{on}]: wrong: norms differ",
        f"ci::opacus[{on}]: it was not timed",
        f"ci::ghostclip[{on}]: it was not timed",
        "ci::bk[transformers:gpt2 B=max]: its step, at the largest batch (3), is of another size than others'",
        f"ci::tf_privacy[{on}]: not run",
    ]
    with pytest.raises(EmptySelection, match=r"no cell of .* has a time that can be compared; see: dpbench show"):
        exported([read(tmp_path, records[1:])])


def test_one_document_holds_a_cell_once_and_one_machine(tmp_path):
    first, again = (read(tmp_path, [record("bk")]) for _ in range(2))
    with pytest.raises(DpbenchError, match=r"both have ci::bk\[.*compare takes several"):
        exported([first, again])
    other = replace(again.header, suite="other", environment={"machine": {"id": "m2"}})
    with pytest.raises(DpbenchError, match="different machines or with different versions"):
        exported([first, replace(again, header=other)])
    nightly = read(tmp_path, [record("bk")], "nightly")
    assert [b["fullname"] for b in exported([first, nightly]).document["benchmarks"]] == [
        f"ci::{NAME}",
        f"nightly::{NAME}",
    ]


def test_pytest_benchmark_compares_two_of_them(tmp_path):
    for name, seconds in (("base", SECONDS), ("new", ((1.0,),))):
        document = exported([read(tmp_path, [record("bk", seconds=seconds)])]).document
        (tmp_path / f"{name}.json").write_text(json.dumps(document, allow_nan=False))
    command = ["compare", "base.json", "new.json", "--group-by=fullname", "--columns=median,rounds", "--sort=min"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", *command], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("bk[")]
    assert [line[-3:] for line in lines] == [["500.0000", "(1.0)", "4"], ["1,000.0000", "(2.00)", "1"]], done.stdout


def test_steps_of_one_logical_batch_can_be_compared_whatever_they_are_made_of(tmp_path):
    made = replace(record("bk", workload(batch="max", logical_batch=8)), largest=3)
    document, _ = exported([read(tmp_path, [made])])
    assert document["benchmarks"][0]["extra_info"]["batch"] == 3


def test_names_are_made_of_the_axes_that_are_set():
    assert named(Cell("bk", workload("timm:vit(depth=2)", 4, threads=1))) == "bk[timm:vit(depth=2) B=4 threads=1]"
