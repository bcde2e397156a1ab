"""Cells of a suite as benchmarks, seen through real runs of pytest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dpbench.registry import source_hash
from tests.conformance.mutants import mutant

pytest_plugins = ["pytester"]

MISBEHAVING = Path(__file__).parents[1] / "misbehaving"
QUICK = ["--benchmark-max-time=0.02", "--benchmark-min-rounds=3"]
LABEL = "synthetic:mlp(width=8) B=4 threads=1"


def suite_file(directory, *implementations, name="ci", **axes):
    path = directory / f"{name}.toml"
    axes = {"model": ["synthetic:mlp(width=8)"], "batch": [4], "threads": 1, "implementation": implementations} | axes
    lines = ["budget_s = 0.01", "[axes]", *(f"{key} = {json.dumps(value)}" for key, value in axes.items())]
    path.write_text("\n".join(lines))
    return str(path)


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """A worker of pytest-xdist, in which these tests may run, times nothing; the runs that they start are none."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


def run(pytester, *arguments):
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-rs", *arguments)


def collect(pytester, *arguments):
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "--collect-only", "-q", *arguments)


def saved(path):
    return {b["fullname"]: b for b in json.loads(Path(path).read_text())["benchmarks"]}


def test_cells_are_benchmarks_with_all_that_is_known_of_them_and_runs_are_compared(pytester):
    cells = suite_file(pytester.path, "nonprivate", "bk")
    done = run(pytester, "--dpbench", cells, "--benchmark-json=it.json", *QUICK)
    done.assert_outcomes(passed=2)
    benchmarks = saved("it.json")
    assert list(benchmarks) == [f"ci::nonprivate[{LABEL}]", f"ci::bk[{LABEL}]"]
    for benchmark in benchmarks.values():
        assert benchmark["group"] == LABEL
        assert benchmark["stats"]["rounds"] >= 3
    info = benchmarks[f"ci::bk[{LABEL}]"]["extra_info"]
    assert info["source"] == source_hash("bk")
    assert {"torch", "device_name", "dpbench", "threads"} <= set(info)
    assert info["threads"] == 1
    assert info["coverage"] == 1
    assert info["parity_error"] < 1e-8
    assert info["memory"] > 0
    assert (info["model"], info["batch"], info["precision"]) == ("synthetic:mlp(width=8)", 4, "fp32")
    assert info["examples_per_s"] == pytest.approx(4 / benchmarks[f"ci::bk[{LABEL}]"]["stats"]["median"])
    run(pytester, "--dpbench", cells, "--benchmark-json=again.json", *QUICK).assert_outcomes(passed=2)
    command = ["compare", "it.json", "again.json", "--group-by=fullname", "--columns=median"]
    done = subprocess.run([sys.executable, "-m", "pytest_benchmark", *command], capture_output=True, text=True)
    assert done.returncode == 0
    for name in benchmarks:
        # In the title of its group, and in a line for each run.
        assert done.stdout.count(name.removeprefix("ci::")) == 3, done.stdout


def test_what_has_no_speed_fails_and_what_is_refused_is_skipped_with_its_reason(pytester):
    bad = [str(MISBEHAVING / f"{name}.py") for name in ("refuses", "wrong", "raises", "crashes", "hungry")]
    done = run(pytester, "--dpbench", suite_file(pytester.path, "bk", *bad), "--benchmark-json=it.json", *QUICK)
    done.assert_outcomes(passed=2, failed=4, skipped=1)
    done.stdout.fnmatch_lines_random(
        [
            "SKIPPED*refuses.py* refused: Sequential is not to my taste",
            "*wrong.py* wrong: *differs from the per-example loop's by 1e-06*",
            "*raises.py* failed: KeyError: 'no such key'",
            "*crashes.py* failed: its process died of SIGSEGV*",
            "*hungry.py* out of memory: *",
            "Make it smaller, or leave the cell out of the suite (?[[]exclude]]), if that is to be so.",
        ]
    )
    done.stdout.no_fnmatch_line("*Traceback*")
    done.stdout.no_fnmatch_line("*fixture was not used*")
    assert list(saved("it.json")) == [f"ci::nonprivate[{LABEL}]", f"ci::bk[{LABEL}]"]


def test_a_refusal_of_what_has_a_figure_in_the_run_compared_with_fails(pytester):
    name = mutant(pytester.path)
    cells = suite_file(pytester.path, name)
    run(pytester, "--dpbench", cells, "--benchmark-save=base", *QUICK).assert_outcomes(passed=2)
    text = Path(name).read_text()
    Path(name).write_text(text.replace("    pass\n    return Step", '    raise Refused("not today")\n    return Step'))
    done = run(pytester, "--dpbench", cells, "--benchmark-compare=0001", *QUICK)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*refused: not today", "The run that is compared with has a figure of it*"])


def test_benchmarks_that_are_skipped_are_not_even_checked(pytester):
    cells = suite_file(pytester.path, str(MISBEHAVING / "wrong.py"))
    run(pytester, "--dpbench", cells, "--benchmark-skip").assert_outcomes(skipped=2)


def test_where_they_are_disabled_they_are_checked_and_other_tests_find_the_process_as_it_was(pytester):
    pytester.makeconftest("""
        import pytest, torch

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(items):
            items.sort(key=lambda item: item.name.startswith("test_after"))
            torch.set_num_threads(2)
            torch.manual_seed(7)

        @pytest.fixture(autouse=True, scope="module")
        def of_a_module():
            yield
    """)
    pytester.makepyfile("""
        import torch

        def test_after():
            assert torch.get_num_threads() == 2
            assert torch.equal(torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(7)))
    """)
    cells = suite_file(pytester.path, str(MISBEHAVING / "wrong.py"))
    run(pytester, "--dpbench", cells, "--benchmark-disable").assert_outcomes(passed=2, failed=1)


def test_cells_are_chosen_as_in_a_run_and_as_tests(pytester):
    cells = suite_file(pytester.path, "bk", "opacus", batch=[4, 8])

    def collected(*arguments):
        done = collect(pytester, "--dpbench", cells, "--dpbench", cells, *arguments)
        return [line.removeprefix("ci::") for line in done.outlines if line.startswith("ci::")]

    at = "[synthetic:mlp(width=8) B={} threads=1]".format
    assert collected("--dpbench-select", "B=4 and opacus") == [f"nonprivate{at(4)}", f"opacus{at(4)}"]
    assert collected("--dpbench-impl", "vmap,bk", "-k", "vmap") == [f"vmap{at(4)}", f"vmap{at(8)}"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dpbench", "nosuch"], "unknown suite 'nosuch'"),
        (["--dpbench", "ci.toml", "--dpbench-select", "B=5"], "B=5"),
        (["--dpbench", "ci.toml", "--dpbench-impl", "bk2"], "Did you mean bk"),
        (["--dpbench", "ci.toml", "--dpbench", "other/ci.toml"], "have one name"),
        (["--dpbench", "ci.toml", "-p", "no:benchmark"], "pip install pytest-benchmark"),
        (["--dpbench", "max.toml"], "Add logical_batch, or use: dpbench run"),
        (["--dpbench-select", "B=4"], "--dpbench-select is given without --dpbench"),
        (["--dpbench-case", "linear"], "--dpbench-case is given without --dpbench-verify"),
    ],
)
def test_a_mistake_in_the_options_is_one_message(pytester, arguments, said):
    suite_file(pytester.path, "bk")
    (pytester.path / "other").mkdir()
    suite_file(pytester.path / "other", "bk")
    path = Path(suite_file(pytester.path, "bk", name="max", batch="max"))
    path.write_text('memory = "1MB"\n' + path.read_text())
    done = collect(pytester, *arguments)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"ERROR: *{said}*"])
