import re

import pytest

from dpbench.document.latex import is_long, latex
from dpbench.document.parts import Chart, Grid
from dpbench.document.typeset import typeset
from tests.document.results_for_tests import reported, timed
from tests.records_for_tests import sweep, workload

PICTURES = {"throughput-vs-batch": "../charts/throughput-vs-batch.pdf"}


@pytest.fixture
def document(tmp_path):
    return reported(tmp_path, *sweep(6), timed("bk", 1.0, workload(batch=16)))


def test_it_takes_in_every_table_once_and_what_it_takes_in_is_written(document):
    text = typeset(document, {})
    grids = [part for section in document.sections for part in section.parts if isinstance(part, Grid)]
    taken = re.findall(r"\\input\{(.*?)\}", text)
    assert taken == [*(f"{grid.id}.tex" for grid in grids), "methods.tex"]
    assert set(taken) <= set(latex(document))
    assert r"\bibliography{references}" in text


def test_every_table_and_figure_has_a_caption_and_a_label(document):
    charts = {c.id: f"../charts/{c.id}.pdf" for s in document.sections for c in s.parts if isinstance(c, Chart)}
    text = typeset(document, charts) + "".join(latex(document).values())
    grids = [part for section in document.sections for part in section.parts if isinstance(part, Grid)]
    labels = re.findall(r"\\caption\{.*\}\\label\{(.*?)\}", text)
    assert sorted(labels) == sorted([*(f"tab:{grid.id}" for grid in grids), *(f"fig:{chart}" for chart in charts)])
    for kind in ("table", "figure"):
        assert text.count(rf"\begin{{{kind}}}") == text.count(rf"\end{{{kind}}}")
    assert any(map(is_long, grids)) == (r"\tiny" in text)


def test_charts_without_a_picture_are_left_out(document):
    assert r"\includegraphics" not in typeset(document, {})
    assert typeset(document, PICTURES).count(r"\includegraphics{../charts/throughput-vs-batch.pdf}") == 1


def test_without_papers_nothing_is_cited(tmp_path):
    assert r"\bibliography" not in typeset(reported(tmp_path, timed("nonprivate", 1.0)), {})
