import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.errors import DpbenchError, EmptySelection
from tests.records_for_tests import nights, record, rounds_of, workload


def made(n):
    return [
        record(name, workload(batch=b), seconds=rounds_of(0.1 * slow, n + 100 * b + len(name)))
        for b in (8, 16)
        for name, slow in (("nonprivate", 1.0), ("bk", 1.3 if n >= 9 else 1.0))
    ]


@pytest.fixture
def directory(tmp_path):
    nights(tmp_path / "runs", 14, made)
    return str(tmp_path / "runs")


def run(*arguments):
    done = CliRunner().invoke(app, ["history", *arguments])
    assert done.exit_code == 0, done.exception
    return done


def mistake(*arguments):
    error = CliRunner().invoke(app, ["history", *arguments]).exception
    assert isinstance(error, DpbenchError)
    return error


def test_a_change_is_told_and_the_command_ends_well(directory):
    text = run(directory).stdout
    assert text.count("x slower [1.") == 2
    assert "since nightly-20300110T020000Z.jsonl (2030-01-10)" in text
    assert text.isascii(), "bars are for terminals that can show them"


def test_files_may_come_in_any_order(directory, tmp_path):
    paths = sorted(map(str, (tmp_path / "runs").iterdir()))
    assert run(*paths[::-1]).stdout == run(directory).stdout


def test_cells_are_chosen_as_everywhere(directory):
    text = run(directory, "-k", "bk and B=16").stdout
    assert "1 cell, of which 1 changed" in text
    error = mistake(directory, "-k", "opacus")
    assert (type(error), error.exit_code) == (EmptySelection, 5)


def test_runs_before_a_day_may_be_left_out(directory):
    assert run(directory, "--since", "2030-01-10").stdout.startswith("5 runs of nightly, 2030-01-10 to 2030-01-14\n")
    error = mistake(directory, "--since", "2031-01-01")
    assert error.exit_code == 5
    assert str(error) == "--since 2031-01-01: the last of 14 runs is of 2030-01-14"


def test_json_has_an_object_for_each_cell(directory):
    found = json.loads(run(directory, "--json").stdout)
    assert {(o["implementation"], o["workload"]["batch"]) for o in found} == {
        (name, b) for name in ("nonprivate", "bk") for b in (8, 16)
    }
    assert [len(o["changes"]) for o in found] == [1, 1, 0, 0]
    assert found[0]["changes"][0]["low"] < 1.3 < found[0]["changes"][0]["high"]


def test_another_figure_and_no_ratios_can_be_asked_for(directory):
    assert "peak memory above parameters and batch" in run(directory, "--value", "memory").stdout
    assert "2.00 GB" in run(directory, "--value", "memory").stdout
    assert "share no clock" in run(directory, "--relative-to", "none").stdout


@pytest.mark.parametrize("name", ["it.png", "it.svg", "it.pdf"])
def test_a_picture_is_written_beside_the_list(directory, tmp_path, name):
    done = run(directory, "-k", "bk", "--plot", str(tmp_path / name), "--json")
    assert (tmp_path / name).stat().st_size > 1000
    assert done.stderr == f"{tmp_path / name} written\n"
    assert len(json.loads(done.stdout)) == 2, "nothing else is on stdout"


def test_a_picture_that_could_not_be_drawn_is_told_before_anything_is_done(tmp_path):
    assert "expected a name that ends in .png, .svg or .pdf" in str(mistake("no-file", "--plot", "it.jpg"))
    assert "there is no directory" in str(mistake("no-file", "--plot", str(tmp_path / "missing" / "it.svg")))


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["-k", "opacus"], 5), (["--value", "memry"], 2)])
def test_exit_codes_of_the_process(directory, arguments, code):
    script = "import sys; from dpbench.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script, "history", directory, *arguments], capture_output=True)
    assert done.returncode == code


def test_nothing_heavy_is_imported(directory):
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom dpbench.cli import app\n"
        "done = CliRunner().invoke(app, sys.argv[1:])\nassert done.exit_code == 0\n"
        "print([m for m in ('torch', 'pandas', 'matplotlib', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "history", directory], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
