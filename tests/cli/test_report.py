import errno
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.cli.report import opening, report, told
from dpbench.document.build import build
from dpbench.document.parts import Chart
from dpbench.errors import DpbenchError, EmptySelection
from dpbench.frame import read_all
from tests.document.results_for_tests import charts
from tests.records_for_tests import record, sweep, workload, write
from tests.test_torch_free import imported


def test_it_lies_beside_its_file_and_ends_with_how_to_open_it(tmp_path, capsys):
    path = write(tmp_path, sweep())
    report([str(path)], formats_="md,latex")
    said = capsys.readouterr().out.splitlines()
    out = tmp_path / f"{path.stem}-report"
    assert said[0] == str(out / "report.md")
    assert all(Path(line).is_file() for line in said[:-1])
    assert said[-1] == f"open it with: less {out}/report.md"


def test_of_several_files_it_lies_beside_the_first(tmp_path, capsys):
    first, second = write(tmp_path / "a", [record()]), write(tmp_path / "b", [record()])
    report([str(first), str(second)], formats_="md")
    assert capsys.readouterr().out.splitlines()[0] == str(tmp_path / "a" / "report" / "report.md")


def test_without_a_file_the_last_run_is_taken_and_a_page_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "results", [record("bk"), record("vmap")])
    done = CliRunner().invoke(app, ["report", "-o", "out", "--title", "Mine"])
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == "out/index.html"
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<title>Mine</title>" in page
    assert path.name in page


def test_json_says_what_was_written_and_found(tmp_path, capsys):
    path = write(tmp_path, [record("bk")])
    report([str(path)], tmp_path / "out", "md", as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["files"] == [str(tmp_path / "out" / "report.md")]
    assert said["summary"][0] == "1 cell: 1 ok."
    assert said["sources"][0] == {"id": "A", "file": str(path), "records": 1, "missing": 0, "remarks": []}


def test_a_selection_that_is_empty_exits_5_and_says_what_there_was(tmp_path):
    path = write(tmp_path, [record("bk")])
    with pytest.raises(EmptySelection, match="matches none of 1 cells. Implementations: bk") as caught:
        report([str(path)], tmp_path / "out", "md", "vmap")
    assert caught.value.exit_code == 5
    assert not (tmp_path / "out").exists()


def test_a_format_that_there_is_not_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(DpbenchError, match="unknown format 'docx'. Known: html, latex, md, pdf, png, svg."):
        report(["no such file"], tmp_path / "out", "docx")


def test_a_full_disk_exits_2_with_one_line(tmp_path, monkeypatch, capsys):
    from dpbench.cli import main

    def full(path, *rest, **more):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = write(tmp_path, [record("bk")])
    monkeypatch.setattr("sys.argv", ["dpbench", "report", str(path), "--formats", "md"])
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        f"dpbench: cannot write the report into {tmp_path}/{path.stem}-report: No space left on device\n"
    )


def test_a_torn_line_is_told_on_stderr_and_in_the_report(tmp_path, capsys):
    path = write(tmp_path, [record("bk")])
    with path.open("a") as torn:
        torn.write('{"cell":')
    report([str(path)], tmp_path / "out", "md")
    assert "line 3: incomplete" in capsys.readouterr().err
    assert "line 3: incomplete" in (tmp_path / "out" / "report.md").read_text()


def test_progress_is_told_where_drawing_takes_longer_than_a_second(tmp_path):
    document = build(read_all([write(tmp_path, [record(on=workload(batch=b)) for b in (1, 2)])]))
    time, said = [0.0], []
    slow = charts(told(document, said.append, lambda: time[0]))
    for chart in slow:
        time[0] += 0.7
        assert chart.draw().axes
    assert len(slow) == 2
    assert said == ["drawing chart 2 of 2"]
    # A second format: from the first chart again.
    for chart in slow:
        time[0] += 2.0
        assert chart.draw().axes
    assert said[1:] == ["drawing chart 1 of 2", "drawing chart 2 of 2"]
    assert all(isinstance(chart, Chart) for chart in slow)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (["a b/index.html", "a b/report.md"], "'a b/index.html'"),
        (["x/report.md"], "less x/report.md"),
        (["x/charts/a.png"], "1 files"),
        ([], "no file was made"),
    ],
)
def test_how_to_open_what_was_made(written, said):
    assert said in opening([Path(path) for path in written])


def test_it_starts_without_what_only_drawing_needs(tmp_path):
    heavy = ("torch", "pandas", "matplotlib", "jinja2", "rich")
    assert imported("import dpbench.cli.report", heavy) == "[]"
    path = str(write(tmp_path, [record("nonprivate"), record("bk")]))
    code = "from dpbench.cli import main; main()"
    assert imported(code, heavy, "report", path, "-o", str(tmp_path / "out"), "--formats", "md,latex") == "[]"
