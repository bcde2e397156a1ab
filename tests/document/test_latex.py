import re

import pytest

from dpbench.document.latex import METHODS, latex, table
from dpbench.document.parts import Column, Entry, Grid, Kind
from tests.document.results_for_tests import reported, timed
from tests.records_for_tests import sweep, workload

NASTY = "mine_&%$#{}~^\\<script>\"'|`*[x].py:build"


def grid(lines):
    entries = tuple((Entry("a_b"), Entry("0.50", 0.5, kind=Kind.BEST, note="50 % less")) for _ in range(lines))
    return Grid("g", "Caption_1", (Column("name", numeric=False), Column("bk", "ratio")), entries, notes=("below",))


def test_a_table_with_the_rules_of_booktabs_and_its_notes():
    assert table(grid(1)).splitlines() == [
        "% Caption_1",
        r"% needs \usepackage{booktabs}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"name & bk (ratio) \\",
        r"\midrule",
        r"a\_b & \textbf{0.50}$^{1}$ \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\smallskip",
        r"{\footnotesize $^{1}$ 50 \% less\par}",
        r"{\footnotesize below\par}",
    ]


def test_a_table_longer_than_a_page_is_broken():
    text = table(grid(41))
    assert r"\begin{longtable}{lr}" in text
    assert text.index(r"\midrule") < text.index(r"\endhead")
    assert "booktabs,longtable" in text


@pytest.mark.parametrize("records", ["sweep", "nasty"])
def test_every_line_has_as_many_columns_and_every_brace_its_other(tmp_path, records):
    on = workload(model=NASTY)
    made = sweep(6) if records == "sweep" else [timed(n, 1.0, on) for n in ("nonprivate", "bk", "my<impl>&_[.py")]
    files = latex(reported(tmp_path, *made))
    assert METHODS in files
    for name, text in files.items():
        plain = re.sub(r"\\[\\&%$#_{}]", lambda m: "\n" if m.group() == "\\\\" else "", text)
        plain = "\n".join(line for line in plain.splitlines() if not line.startswith("%"))
        assert plain.count("{") == plain.count("}")
        assert plain.count("$") % 2 == 0
        if name != METHODS:
            columns = len(re.search(r"\\begin\{(?:tabular|longtable)\}\{([lr]+)\}", text)[1])
            rows = [line for line in text.splitlines() if line.endswith(r" \\")]
            assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {columns - 1}


def test_the_methods_have_the_papers(tmp_path):
    text = latex(reported(tmp_path, timed("bk", 1.0)))[METHODS]
    assert r"\item M. Abadi" in text
    assert "arXiv:2210.00038." in text
    assert text.count(r"\begin{itemize}") == text.count(r"\end{itemize}") == 1
