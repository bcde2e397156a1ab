import csv
import io

import pytest

from dpbench import results
from dpbench.records import Outcome
from dpbench.reporting.formats import FORMATS
from dpbench.reporting.table import build
from tests.records_for_tests import record, workload, write


@pytest.fixture
def table(tmp_path):
    on = workload("timm:a_b(x|y)")
    records = [
        record("nonprivate", on, seconds=[[0.3]]),
        record("bk_mixopt", on, Outcome.REFUSED, "needs 100 % of {it} & more"),
    ]
    return build([results.read(write(tmp_path, records))])


def test_text_is_aligned_and_has_its_footnotes(table):
    assert FORMATS["text"](table) == (
        "throughput, examples/s (higher is better); B 8, precision fp32, device cpu\n"
        "\n"
        "model          nonprivate    bk_mixopt\n"
        "--------------------------------------\n"
        "timm:a_b(x|y)        26.7  refused [1]\n"
        "\n"
        "[1] bk_mixopt: needs 100 % of {it} & more\n"
    )


def test_markdown_is_a_table_of_equal_rows(table):
    lines = FORMATS["md"](table).splitlines()
    assert lines[2:5] == [
        "| model | nonprivate | bk_mixopt |",
        "| --- | ---: | ---: |",
        "| timm:a_b(x\\|y) | 26.7 | refused [1] |",
    ]
    assert lines[-1] == "1. bk_mixopt: needs 100 % of {it} & more"


def test_latex_is_escaped_and_uses_booktabs(table):
    text = FORMATS["latex"](table)
    assert r"\toprule" in text
    assert r"timm:a\_b(x|y) & 26.7 & refused$^{1}$ \\" in text
    assert r"$^{1}$ bk\_mixopt: needs 100 \% of \{it\} \& more" in text
    assert text.count("{") == text.count("}")


def test_csv_has_full_precision_and_units(table):
    head, line = csv.reader(io.StringIO(FORMATS["csv"](table)))
    assert head == ["model", "nonprivate [examples/s]", "bk_mixopt [examples/s]"]
    assert line == ["timm:a_b(x|y)", repr(8 / 0.3), "refused"]
