import re

import pytest

from dpbench.document.latex import FIT, METHODS, REFERENCES, latex, table
from dpbench.document.parts import Column, Entry, Grid, Kind
from tests.document.results_for_tests import reported, timed
from tests.records_for_tests import record, sweep, workload

NASTY = "mine_&%$#{}~^\\<script>\"'|`*[x].py:build"


def grid(lines):
    entries = tuple((Entry("a_b"), Entry("0.50", 0.5, kind=Kind.BEST, note="50 % less")) for _ in range(lines))
    return Grid("g", "Caption_1", (Column("name", numeric=False), Column("bk", "ratio")), entries, notes=("below",))


def test_a_table_with_the_rules_of_booktabs_and_its_notes():
    assert table(grid(1)).splitlines() == [
        "% Caption_1",
        r"% needs \usepackage{booktabs,graphicx}",
        FIT,
        r"\tofit{\begin{tabular}{lr}",
        r"\toprule",
        r"name & bk \\",
        r" & (ratio) \\",
        r"\midrule",
        r"a\_b & \textbf{0.50}$^{1}$ \\",
        r"\bottomrule",
        r"\end{tabular}}",
        r"\par\smallskip",
        r"{\raggedright\footnotesize $^{1}$ 50 \% less\par}",
        r"{\raggedright\footnotesize below\par}",
    ]


def test_a_head_without_units_is_one_line():
    text = table(Grid("g", "c", (Column("name"), Column("bk")), ((Entry("a"), Entry("b")),)))
    assert text.split("\\toprule\n")[1].startswith("name & bk \\\\\n\\midrule")


def test_a_table_longer_than_a_page_is_broken_and_has_its_caption_within():
    text = table(grid(41))
    first, rest, body = re.split(r"\\endfirsthead|\\endhead", text)
    assert "\\begin{longtable}{lr}\n\\caption{Caption\\_1}\\label{tab:g}\\\\\n\\toprule" in first
    assert first.endswith("\\midrule\n")
    # Of the same heads the first alone has the caption: a label on every page would be defined several times.
    assert first.split("\n\\toprule")[1] == rest.split("\n\\toprule")[1]
    assert "caption" not in rest + body
    assert "needs \\usepackage{booktabs,longtable}, in one column and with room" in text
    assert r"\tofit" not in text


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
        if name.endswith(".tex") and name != METHODS:
            columns = len(re.search(r"\\begin\{(?:tabular|longtable)\}\{([lr]+)\}", text)[1])
            rows = [line for line in text.splitlines() if line.endswith(r" \\")]
            assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {columns - 1}


def test_the_methods_cite_what_the_bibliography_has(tmp_path):
    files = latex(reported(tmp_path, timed("bk", 1.0), timed("opacus", 1.0)))
    keys = [key for found in re.findall(r"\\cite\{([^}]*)\}", files[METHODS]) for key in found.split(",")]
    assert {"abadi2016deep", "yousefpour2021opacus", "bu2023differentially", "efron1993introduction"} <= {*keys}
    assert sorted(re.findall(r"^@\w+\{(.*),", files[REFERENCES], re.M)) == sorted(keys)
    assert r"bk \cite{bu2023differentially}" in files[METHODS]
    assert "et al." not in files[METHODS]


def test_without_papers_there_is_no_bibliography(tmp_path):
    files = latex(reported(tmp_path, record("nonprivate")))
    assert REFERENCES not in files
    assert r"\cite" not in files[METHODS]
