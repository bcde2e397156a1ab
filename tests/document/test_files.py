import errno
import json
import os
import re
from pathlib import Path

import pytest

from dpbench.document.files import FORMATS, WRITTEN, formats, write
from dpbench.errors import DpbenchError
from tests.document.results_for_tests import reported, timed
from tests.records_for_tests import workload


@pytest.fixture
def document(tmp_path):
    return reported(tmp_path / "results", timed("bk", 1.0), timed("bk", 1.0, workload(batch=16)))


def names(written, directory):
    return [str(path.relative_to(directory)) for path in written]


def test_each_format_has_its_files(document, tmp_path):
    out = tmp_path / "deep" / "out"
    texts = [
        "index.html",
        "report.md",
        "latex/report.tex",
        "latex/throughput.tex",
        "latex/gigabytes.tex",
        "latex/gradients.tex",
    ]
    written = names(write(document, out, FORMATS), out)
    assert written[:8] == [*texts, "latex/methods.tex", "latex/references.bib"]
    assert sorted(written[8:]) == sorted(
        f"charts/{q}-vs-batch.{suffix}" for q in ("throughput", "memory") for suffix in ("svg", "png", "pdf")
    )
    assert all((out / name).stat().st_size for name in written)
    assert "![Lines of bk over B = 8, 16; 1 panel](<charts/throughput-vs-batch.svg>)" in (out / "report.md").read_text()


def test_again_it_replaces_its_own_and_nothing_is_left_beside_them(document, tmp_path):
    write(document, tmp_path / "out", ["md", "png"])
    (tmp_path / "out" / "mine.txt").write_text("mine")
    write(document, tmp_path / "out", ["md"])
    found = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*") if p.is_file())
    charts = ["charts/memory-vs-batch.png", "charts/throughput-vs-batch.png"]
    assert found == [WRITTEN, *charts, "mine.txt", "report.md"]
    assert json.loads((tmp_path / "out" / WRITTEN).read_text()) == [*charts, "report.md"]


@pytest.mark.parametrize("name", ["report.md", "charts/memory-vs-batch.png"])
def test_what_no_report_wrote_is_never_replaced(document, tmp_path, name):
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(
        DpbenchError,
        match=r"is in the way, and \.dpbench-report\.json there does not say that dpbench report wrote it; name",
    ):
        write(document, tmp_path / "out", ["md", "png"])
    assert path.read_text() == "mine"
    assert [p for p in (tmp_path / "out").rglob("*") if p.is_file()] == [path]


def test_the_committed_report_may_be_made_anew():
    root, report = Path(__file__).parents[2], "results/reference/reproduction/report/"
    shown = re.findall(rf"{report}([\w./-]+)", (root / "README.md").read_text(encoding="utf-8"))
    assert {"index.html"} < {*shown} <= {*json.loads((root / report / WRITTEN).read_text())}


def test_a_full_disk_is_one_error_and_leaves_no_half_a_file(document, tmp_path, monkeypatch):
    whole = Path.write_text

    def full(path, text, *rest, **more):
        if "report.md" in path.name:
            whole(path, text[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return whole(path, text, *rest, **more)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(DpbenchError, match="cannot write the report into .*out: No space left on device"):
        write(document, tmp_path / "out", ["md"])
    assert [p.name for p in (tmp_path / "out").iterdir()] == [WRITTEN]
    monkeypatch.undo()
    write(document, tmp_path / "out", ["md"])


def test_a_picture_on_a_full_disk_is_one_error_too_and_the_next_report_is_made(document, tmp_path, monkeypatch):
    def full(figure, path, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    with pytest.raises(DpbenchError, match="cannot write the report into .*out: No space left on device"):
        write(document, tmp_path / "out", ["md", "svg"])
    monkeypatch.undo()
    assert len(write(document, tmp_path / "out", ["md", "svg"])) == 3


def test_a_directory_that_cannot_be_made(document, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DpbenchError, match="cannot make the directory .*file: File exists; name another with -o"):
        write(document, tmp_path / "file", ["md"])
    with pytest.raises(DpbenchError, match="cannot make the directory .*: Not a directory; name another with -o"):
        write(document, tmp_path / "file" / "below", ["md"])


def test_text_that_is_no_unicode_is_written_all_the_same(tmp_path):
    document = reported(tmp_path / "r", timed("bk", 1.0, workload(model="модель\udcff")))
    (path,) = write(document, tmp_path / "out", ["md"])
    assert "модель\\udcff" in path.read_text(encoding="utf-8")


def test_formats_are_a_list_of_names_that_there_are():
    assert formats("html, md,html") == ["html", "md"]
    with pytest.raises(DpbenchError, match="unknown format 'doc'. Known: html, latex, md, pdf, png, svg"):
        formats("doc")
    with pytest.raises(DpbenchError, match="--formats is empty, expected some of html, md, latex, svg, png, pdf"):
        formats(" , ")
