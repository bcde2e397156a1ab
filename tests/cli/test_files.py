import pytest

from dpbench.cli.files import opened
from dpbench.errors import DpbenchError
from tests.records_for_tests import record, write


def test_without_names_the_last_run_is_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "results", [record()])
    assert [r.path.name for r in opened(None)] == [path.name]


def test_names_may_be_globs(tmp_path):
    paths = [write(tmp_path, [record()], name) for name in "ab"]
    assert [r.path for r in opened([str(tmp_path / "*.jsonl")])] == paths


def test_a_torn_file_is_read_and_reported(tmp_path, capsys):
    path = write(tmp_path, [record("bk"), record("opacus")])
    path.write_bytes(path.read_bytes()[:-9])
    (results,) = opened([str(path)])
    assert len(results.records) == 1
    assert f"{path}, line 3: incomplete" in capsys.readouterr().err


def test_without_results_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DpbenchError, match="dpbench run quickstart"):
        opened([])
