import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpbench.cli import app, main
from dpbench.cli.values import models, values
from dpbench.errors import DpbenchError, EmptySelection
from dpbench.records import from_json
from dpbench.results import latest

MODEL = "synthetic:mlp(width=8,depth=2)"
QUICK = ["--model", MODEL, "--budget", "0.01", "--rounds", "1", "--threads", "1"]
MISBEHAVING = Path(__file__).parents[1] / "misbehaving"


def run(*words):
    return CliRunner().invoke(app, ["run", *words], catch_exceptions=True)


def test_models_are_separated_by_commas_outside_of_brackets():
    assert models(["a:b(x=1,y=2),c:d", "e:f"]) == ["a:b(x=1,y=2)", "c:d", "e:f"]
    assert models(None) is None


def test_values_are_numbers_where_they_can_be():
    assert values(["4, 8", "16"]) == [4, 8, 16]
    assert values(["bk,opacus"]) == ["bk", "opacus"]
    assert values(["0.5"], float) == [0.5]
    assert values([]) is None


def test_dry_run_prints_the_cells_with_the_baseline_and_writes_nothing(tmp_path):
    done = run(*QUICK, "--batch", "4,8", "--impl", "bk", "--dry-run", "--results", str(tmp_path / "r"))
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["nonprivate", "bk", "nonprivate", "bk"]
    assert "B=8" in lines[2]
    assert not (tmp_path / "r").exists()


def test_the_largest_batch_is_asked_for_by_its_name():
    words = ["--model", MODEL, "--batch", "max", "--logical-batch", "64", "--impl", "bk", "--dry-run"]
    lines = run(*words).stdout.splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines[:2]] == [f"{MODEL} B=max logical_batch=64"] * 2


def test_checkpointing_is_switched_and_loss_chunk_a_number():
    words = ["--model", "transformers:gpt2", "--batch", "4", "--impl", "opacus", "--dry-run"]
    lines = run(*words, "--checkpointing", "--loss-chunk", "16,32").stdout.splitlines()
    ends = [" ".join(line.split()[-2:]) for line in lines if line.startswith("opacus")]
    assert ends == [f"checkpointing=True loss_chunk={n}" for n in (16, 32)]
    assert run(*words, "--no-checkpointing").stdout == run(*words).stdout


def test_the_sequence_length_is_also_called_t():
    assert "T=32" in run("--model", "synthetic:transformer", "--batch", "4", "--T", "32", "--dry-run").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to run"),
        (["quickstrat"], "Did you mean quickstart"),
        (["--model", MODEL], "--batch is missing"),
        (["--model", MODEL, "--batch", "0"], "--batch is 0"),
        (["--model", MODEL, "--batch", "four"], "--batch is 'four', expected a valid integer or 'max'"),
        (["--model", MODEL, "--batch", "max", "--memory", "much"], "--memory is 'much', expected a size such as 40GB"),
        (["--model", MODEL, "--batch", "4", "--precision", "fp31"], "--precision is 'fp31'"),
        (["--model", MODEL, "--batch", "4", "--rounds", "0"], "--rounds is 0"),
        (["--model", MODEL, "--batch", "4", "--impl", "bkk"], "Did you mean bk"),
        (["quickstart", "--model", MODEL], "--model cannot be combined with a suite"),
        (["--resume", "nowhere.jsonl"], "cannot read nowhere.jsonl"),
    ],
)
def test_a_mistake_is_a_message(words, message):
    error = run(*words, "--dry-run").exception
    assert isinstance(error, DpbenchError)
    assert error.exit_code == 2
    assert message in str(error)


def test_nothing_selected_is_an_exit_code_of_its_own():
    error = run(*QUICK, "--batch", "4", "-k", "nowhere", "--dry-run").exception
    assert isinstance(error, EmptySelection)
    assert error.exit_code == 5


def test_a_mistake_ends_the_command_without_a_traceback(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["dpbench", "run", "quickstrat"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("dpbench: unknown suite 'quickstrat'")


def test_json_is_one_record_a_line_and_nothing_else_whatever_an_implementation_prints(tmp_path):
    command = [sys.executable, "-c", "from dpbench.cli import main; main()", "run", *QUICK, "--batch", "4", "--json"]
    command += ["--impl", f"bk,{MISBEHAVING / 'raises.py'}", "--results", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 3
    records = [from_json(line) for line in done.stdout.splitlines()]
    assert {Path(r.cell.implementation).stem: str(r.outcome) for r in records} == {
        "nonprivate": "ok",
        "bk": "ok",
        "raises": "failed",
    }
    assert all(json.loads(line)["environment"]["versions"]["torch"] for line in done.stdout.splitlines())


def test_lines_say_what_is_measured_and_where_everything_is(tmp_path):
    done = run(*QUICK, "--batch", "4,8", "--impl", "bk", "--step", "train", "--results", str(tmp_path))
    assert done.exit_code == 0, done.output
    path = latest(tmp_path)
    for text in ("train (forward, clip, sum, noise", "C_i = min(1, 1 / ||g_i||)", "1 threads", str(path), "[4/4] bk"):
        assert text in done.stdout
    assert path.with_name(f"{path.stem}-throughput-vs-batch.png").exists()


def test_a_refusal_is_no_failure(tmp_path):
    done = run(*QUICK, "--batch", "4", "--impl", str(MISBEHAVING / "refuses.py"), "--results", str(tmp_path))
    assert done.exit_code == 0
    assert "refused: Sequential is not to my taste" in done.stdout
