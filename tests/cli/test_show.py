import json
import math
from dataclasses import replace

import pytest

from dpbench.cli.show import show
from dpbench.records import Outcome, Parity
from dpbench.rows import COLUMNS
from tests.records_for_tests import ENVIRONMENT, record, write

RECORDS = [
    record("nonprivate"),
    replace(
        record("bk", outcome=Outcome.WRONG, reason="not finite"),
        parity=Parity(False, math.inf, 1e-8, "float64"),
    ),
]


@pytest.fixture
def file(tmp_path):
    return write(tmp_path, RECORDS)


def test_plain_lines_where_there_is_no_terminal(file, capsys):
    show([str(file)])
    out = capsys.readouterr().out
    assert out.startswith(f"{file}\nmade-up, started 20")
    assert "wrong [1]" in out
    assert out.endswith("2 cells: 1 ok, 1 wrong\n")
    assert "\x1b" not in out


def test_json_is_strict_and_complete(file, capsys):
    show([str(file)], as_json=True)
    (made,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert list(made["rows"][0]) == list(COLUMNS)
    assert made["rows"][1]["parity_error"] == "inf"
    assert made["environment"] == ENVIRONMENT
    assert made["missing"] == []


def test_a_run_that_was_cut_off_says_how_to_go_on(file, capsys):
    file.write_text("\n".join(file.read_text().splitlines()[:2]) + "\n")
    show([str(file)])
    assert f"1 of 2 cells done; go on with: dpbench run --resume {file}" in capsys.readouterr().out
    show([str(file)], as_json=True)
    assert json.loads(capsys.readouterr().out)[0]["missing"][0]["implementation"] == "bk"
