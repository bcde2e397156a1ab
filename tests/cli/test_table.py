import pytest

from dpbench.cli.table import table
from dpbench.errors import DpbenchError
from tests.records_for_tests import sweep, write


@pytest.fixture
def file(tmp_path):
    return str(write(tmp_path, [r for r in sweep(1) if r.cell.workload.model == "transformers:gpt2"]))


def test_short_names_of_axes_are_understood(file, capsys):
    table([file], rows="T,B", cols="impl")
    short = capsys.readouterr().out
    table([file], rows="seq-len, batch", cols="implementation")
    assert capsys.readouterr().out == short
    assert short.splitlines()[2].split()[:3] == ["T", "B", "nonprivate"]


def test_each_format_can_be_asked_for(file, capsys):
    starts = {"text": "throughput", "md": "**throughput", "latex": "% throughput", "csv": "B,T,"}
    for name, start in starts.items():
        table([file], rows="batch,seq_len", relative_to="nonprivate", format=name)
        assert capsys.readouterr().out.startswith(start)


def test_an_unknown_format_is_named(file):
    with pytest.raises(DpbenchError, match=r"unknown format 'latx'. Did you mean latex"):
        table([file], format="latx")
