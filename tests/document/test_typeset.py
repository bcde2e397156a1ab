import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from dpbench.document.files import write
from dpbench.document.latex import is_long, latex
from dpbench.document.parts import Chart, Column, Entry, Grid, Section
from dpbench.document.typeset import typeset
from tests.document.results_for_tests import reported, timed
from tests.records_for_tests import record, sweep, workload

PICTURES = {"throughput-vs-batch": "../charts/throughput-vs-batch.pdf"}


@pytest.fixture
def document(tmp_path):
    made = reported(tmp_path, *sweep(6), timed("bk", 1.0, workload(batch=16)))
    long = Grid("long", "Long", (Column("name"),), ((Entry("a"),),) * 150)
    return replace(made, sections=(*made.sections, Section("of-pages", "Of pages", parts=(long,))))


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
    assert sum(map(is_long, grids)) == text.count(r"\tiny") > 0


def test_of_a_chart_without_a_picture_it_is_said(document):
    charts = [part for section in document.sections for part in section.parts if isinstance(part, Chart)]
    assert r"\includegraphics" not in typeset(document, {})
    assert typeset(document, {}).count("not drawn here: add pdf or png to {-}{-}formats") == len(charts) > 0
    assert typeset(document, PICTURES).count(r"\includegraphics{../charts/throughput-vs-batch.pdf}") == 1


def test_without_papers_nothing_is_cited(tmp_path, document):
    assert "bibtex report" in typeset(document, {})
    assert "bibtex" not in typeset(reported(tmp_path / "none", record("nonprivate")), {})
    assert r"\bibliography" not in typeset(reported(tmp_path, record("nonprivate")), {})


def test_every_source_that_a_table_names_is_told(document):
    text = typeset(document, {})
    assert [source.id for source in document.sources] == re.findall(r"\\textbf\{(\w+)\}: ", text)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_it_is_what_latex_takes(document, tmp_path):
    write(document, tmp_path / "out", ["latex"])
    for _ in range(2):
        command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "report"]
        done = subprocess.run(command, cwd=tmp_path / "out" / "latex", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "out" / "latex" / "report.log").read_text(encoding="latin-1")
    assert not re.findall(r"multiply defined|Overfull .hbox.*", log)
