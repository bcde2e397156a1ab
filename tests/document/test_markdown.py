import re

import pytest

from dpbench.document.markdown import code, escape, markdown, table
from dpbench.document.parts import Column, Entry, Grid, Kind
from tests.document.results_for_tests import reported, timed
from tests.records_for_tests import record, sweep, workload

GRID = Grid(
    id="g",
    caption="A caption",
    columns=(Column("name", numeric=False), Column("bk", "ratio")),
    lines=(
        (Entry("a|b"), Entry("1.00", 1.0, kind=Kind.BEST)),
        (Entry("c"), Entry("OOM", note="no room", kind=Kind.MUTED)),
        (Entry("d"), Entry("OOM", note="no room", kind=Kind.MUTED)),
    ),
    notes=("said below",),
)


def test_a_table_with_its_notes():
    assert list(table(GRID)) == [
        "**A caption**",
        "| name | bk (ratio) |\n| --- | ---: |\n| a\\|b | **1.00** |\n| c | OOM [1] |\n| d | OOM [1] |",
        "[1] no room  \nsaid below",
    ]


def test_every_line_of_every_table_has_as_many_cells(tmp_path):
    lines = [line for line in markdown(reported(tmp_path, *sweep(6))).splitlines() if line.startswith("|")]
    assert lines
    for block in re.split(r"\n(?!\|)", "\n".join(lines)):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines() if line.startswith("| ---")}
        assert widths


def test_pictures_are_linked_where_they_were_drawn(tmp_path):
    document = reported(tmp_path, timed("bk", 1.0), timed("bk", 1.0, workload(batch=16)))
    assert "![Lines of bk over B = 8, 16; 1 panel](<charts/a.svg>)" in markdown(
        document, {"throughput-vs-batch": "charts/a.svg"}
    )
    assert "(not drawn here: add svg or png to --formats)" in markdown(document)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a*b_c", "a\\*b\\_c"), ("<script>", "\\<script\\>"), ("a\nb|c", "a b\\|c"), ("модель", "модель")],
)
def test_text_is_shown_as_it_is(text, shown):
    assert escape(text) == shown


def test_code_has_as_many_backticks_as_it_needs():
    assert [code(t) for t in ("a", "a`b", "a``b", "")] == ["`a`", "`` a`b ``", "``` a``b ```", ""]


def test_remarks_on_a_source_stand_with_it(tmp_path):
    text = markdown(reported(tmp_path, record("bk")))
    assert "- **A**: `" in text
    assert "  - command: `dpbench run made-up`" in text
