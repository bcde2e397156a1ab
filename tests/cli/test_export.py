import json

import pytest
from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.cli.export import export
from dpbench.errors import DpbenchError
from dpbench.records import Outcome
from tests.records_for_tests import record, write

RECORDS = [record("bk"), record("vmap", outcome=Outcome.REFUSED, reason="it mixes examples")]


def test_json_goes_into_a_file_and_what_is_left_out_to_stderr(tmp_path, capsys):
    export("pytest-benchmark", [str(write(tmp_path, RECORDS))], tmp_path / "it.json")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "left out: made-up::vmap[transformers:gpt2 B=8]: refused: it mixes examples\n"
    document = json.loads((tmp_path / "it.json").read_text(), parse_constant=pytest.fail)
    assert [b["fullname"] for b in document["benchmarks"]] == ["made-up::bk[transformers:gpt2 B=8]"]


def test_csv_of_the_last_run_goes_to_stdout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "results", RECORDS)
    done = CliRunner().invoke(app, ["export", "--to", "csv"])
    assert [line.split(",")[2] for line in done.stdout.splitlines()] == ["implementation", "bk", "vmap"]


def test_a_format_that_there_is_not(tmp_path):
    with pytest.raises(DpbenchError, match="unknown format 'cvs'. Did you mean csv?"):
        export("cvs", [str(write(tmp_path, RECORDS))])
