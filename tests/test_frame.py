import pytest

from dpbench import frame
from dpbench.errors import DpbenchError
from dpbench.records import Outcome
from tests.records_for_tests import record, workload, write


@pytest.fixture
def files(tmp_path):
    names = ["nonprivate", "bk"]
    return [
        write(
            tmp_path,
            [record(n, workload(batch=8, seq_len=t), seconds=[[slow]]) for n in names],
            f"run{slow}",
        )
        for t, slow in ((64, 1.0), (64, 3.0))
    ]


def test_a_glob_a_directory_and_paths_give_the_same_rows(tmp_path, files):
    made = frame.load(str(tmp_path / "*.jsonl"))
    assert len(made) == 4
    assert list(made.columns) == list(frame.COLUMNS)
    assert made.equals(frame.load(tmp_path))
    assert made.equals(frame.load(files))
    assert len(frame.load(files[0])) == 2


def test_ratios_stay_within_a_file(files):
    made = frame.load(files)
    assert made.groupby("implementation").speed_relative.unique().map(list).to_dict() == {
        "bk": [1.0],
        "nonprivate": [1.0],
    }


def test_the_types_of_columns_do_not_depend_on_what_is_in_them(tmp_path):
    ok, bad = (
        frame.load(write(tmp_path, [record(on=workload(seq_len=t), outcome=o)], str(o)))
        for t, o in ((64, Outcome.OK), (None, Outcome.FAILED))
    )
    numbers = [c for c in frame.COLUMNS if ok[c].dtype.kind in "biuf"]
    assert {"batch", "seq_len", "layers", "seconds", "seconds_low"} <= set(numbers)
    assert {"parity_passed", "coverage", "generic"} <= set(numbers)
    assert (ok[numbers].dtypes == bad[numbers].dtypes).all()
    assert bad.seconds.isna().all()
    assert bad.seq_len.isna().all()


def test_a_torn_file_is_read_with_a_warning(files):
    files[0].write_bytes(files[0].read_bytes()[:-3])
    with pytest.warns(UserWarning, match="incomplete"):
        assert len(frame.load(files)) == 3


def test_nothing_there_is_said(tmp_path):
    with pytest.raises(DpbenchError, match=r"matches no file, expected results"):
        frame.load(str(tmp_path / "*.jsonl"))
    with pytest.raises(DpbenchError, match=r"matches no file"):
        frame.load(tmp_path)
