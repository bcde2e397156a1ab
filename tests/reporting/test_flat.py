import csv
import io
import math
from dataclasses import replace

import pandas as pd

from dpbench import load, results
from dpbench.records import Outcome, Parity
from dpbench.reporting.flat import comma_separated
from dpbench.rows import COLUMNS
from tests.records_for_tests import PARTIAL, record, sweep, workload, write


def test_it_is_all_that_load_gives(tmp_path):
    odd = workload('timm:a"b,c', seq_len=4)
    wrong = replace(
        record("vmap", odd, Outcome.WRONG, "inf, they say"), parity=Parity(False, math.inf, 1e-8, "float64")
    )
    records = [*sweep()[:30], record("nonprivate", odd), record("bk", odd, coverage=PARTIAL), wrong]
    path = write(tmp_path, records)
    made = list(csv.DictReader(io.StringIO(comma_separated([results.read(path)]))))
    assert [list(row) for row in made] == [list(COLUMNS)] * len(records)
    frame = load(path)
    for name in COLUMNS:
        kind = float if frame[name].dtype == float else str
        assert [row[name] and kind(row[name]) for row in made] == [
            "" if pd.isna(value) else kind(value) for value in frame[name]
        ], name


def test_rows_stand_as_the_files_do(tmp_path):
    first, second = (write(tmp_path, records, n) for n, records in (("b", [record("bk")]), ("a", [record("opacus")])))
    lines = comma_separated([results.read(first), results.read(second)]).splitlines()
    assert [line.split(",")[2] for line in lines] == ["implementation", "bk", "opacus"]
