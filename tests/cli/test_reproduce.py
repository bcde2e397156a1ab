"""``dpbench reproduce``, its children simulated: what it prints, where it stops, and how it goes on."""

import contextlib
import errno
import json
import os
import sys
from pathlib import Path

import pytest

from dpbench.cli import main
from dpbench.cli import reproduce as command
from dpbench.cli.report import gathered
from dpbench.errors import DpbenchError
from dpbench.reproduction import FILE, read
from dpbench.results import read as read_results
from tests.records_for_tests import record, write
from tests.reporting.test_reproduction import value
from tests.reproducing.tiny import PAPER, unprocessed, written
from tests.test_reproduction import figure, reproduction
from tests.test_reproduction import write as write_reproduction
from tests.test_runner import FakeLauncher

PAGE_OF = command.page_of


@pytest.fixture
def dpbench(tmp_path, monkeypatch, capsys):
    """The command, in a directory with a paper and its suite; exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    monkeypatch.setattr(command, "ended_as_interrupted", lambda: None)
    monkeypatch.setattr(command, "not_interrupted_again", lambda: None)
    monkeypatch.setattr(command, "page_of", lambda made, results, directory: directory / "report" / "index.html")

    def call(*words, launcher=None):
        unprocessed(monkeypatch, launcher or FakeLauncher())
        monkeypatch.setattr("sys.argv", ["dpbench", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return call


def interrupted(job):
    raise KeyboardInterrupt


def test_figures_are_listed_for_people_and_machines(dpbench):
    code, out, _ = dpbench("reproduce", "--list")
    assert code == 0
    assert "one                2        small" in out
    assert "mine: Somebody. Something. 2030" in out
    code, out, _ = dpbench("reproduce", "mine/*", "--list", "--json")
    assert [(f["paper"], f["id"], f["title"]) for f in json.loads(out)] == [
        ("mine", "one", "First"),
        ("mine", "two", "Second"),
    ]


def test_a_paper_is_taken_from_a_file_too(dpbench, tmp_path):
    (tmp_path / "papers" / "mine.toml").rename(tmp_path / "elsewhere.toml")
    assert dpbench("reproduce", "one", "--list")[0] == 5
    assert dpbench("reproduce", "one", "--list", "--paper", "elsewhere.toml")[0] == 0


def test_a_paper_that_is_named_is_found_again(dpbench, tmp_path):
    (tmp_path / "papers" / "mine.toml").rename(tmp_path / "elsewhere.toml")
    done = dpbench("reproduce", "two", "--paper", "elsewhere.toml", "--no-measure", "-o", "out")
    assert done[0] == 0
    assert dpbench("reproduce", "--resume", "out")[0] == 0


def test_an_unknown_figure_exits_5_with_the_names(dpbench):
    code, out, err = dpbench("reproduce", "three")
    assert (code, out) == (5, "")
    assert "no figure is called 'three'; there are" in err
    assert "one, two" in err


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("bk = 800", 'bk = "fast"', "figure[0].row[0].throughput.bk is 'fast', expected a number above 0"),
        ('id = "two"', 'id = "one"', "2 figures are called 'one'"),
        ('suite = "small"', 'suite = "large"', "unknown suite 'large'"),
    ],
)
def test_a_mistake_in_a_paper_exits_2_and_leaves_nothing(dpbench, tmp_path, before, after, said):
    written(tmp_path, PAPER.replace(before, after, 1))
    code, _, err = dpbench("reproduce", "one", "-o", "out")
    assert code == 2
    assert said in err
    assert not (tmp_path / "out").exists()


def test_a_device_that_is_not_there_exits_2_before_anything_is_done(dpbench, tmp_path):
    launcher = FakeLauncher()
    code, out, err = dpbench("reproduce", "one", "-o", "out", "--device", "cuda:99", launcher=launcher)
    assert (code, out, launcher.jobs) == (2, "", [])
    assert err.startswith("dpbench: device cuda:99 is not there")
    assert not (tmp_path / "out").exists()


def test_figures_on_stdout_and_the_course_of_it_on_stderr(dpbench):
    code, out, err = dpbench("reproduce", "one", "two", "-o", "out")
    assert code == 0
    assert "First [one]" in out
    assert "left out: small: B=16 and opacus (slow)" in out
    assert "2 of 2 figures" in out
    assert out.splitlines()[-2:] == ["results  out", "report   out/report/index.html"]
    assert "[1/2] First" in err
    assert "[5/5] bk" in err


def test_json_is_the_reproduction_and_nothing_else(dpbench):
    _, out, _ = dpbench("reproduce", "two", "-o", "out", "--json")
    assert json.loads(out) == json.loads(Path("out", FILE).read_text())


def test_a_failed_cell_exits_3_also_when_it_was_before(dpbench):
    assert dpbench("reproduce", "two", "-o", "out", launcher=FakeLauncher({("memory", "bk"): "failed"}))[0] == 3
    assert dpbench("reproduce", "--resume", "out")[0] == 3


def test_ctrl_c_exits_130_and_says_how_to_go_on(dpbench):
    trouble = {("memory", "opacus"): interrupted}
    code, _, err = dpbench("reproduce", "one", "two", "-o", "an out", launcher=FakeLauncher(trouble))
    assert code == 130
    assert err.endswith("interrupted; go on with: dpbench reproduce --resume 'an out'\n")
    assert read(Path("an out")).asked == ("one", "two")
    code, out, err = dpbench("reproduce", "--resume", "an out")
    assert code == 0
    assert "2 of 2 figures" in out
    assert "[5/5]" in err
    assert len(list(Path("an out").glob("*.jsonl"))) == 2


def test_other_figures_another_card_or_device_are_not_gone_on_with(dpbench):
    dpbench("reproduce", "one", "two", "--no-measure", "-o", "out")
    for words in (["one"], ["--card", "T4"], ["--device", "cpu"], ["--measure"], ["-o", "other"]):
        code, _, err = dpbench("reproduce", "--resume", "out", *words)
        assert code == 2
        assert "was begun with" in err or "goes on where it began" in err


def test_what_cannot_be_gone_on_with_is_said(dpbench, tmp_path):
    assert "there is no directory none" in dpbench("reproduce", "--resume", "none")[2]
    (tmp_path / "empty").mkdir()
    code, _, err = dpbench("reproduce", "--resume", "empty")
    assert code == 2
    assert "cannot read empty/reproduction.json" in err


def test_a_directory_that_is_taken_is_left_as_it_is(dpbench):
    dpbench("reproduce", "two", "--no-measure", "-o", "out")
    code, _, err = dpbench("reproduce", "one", "-o", "out")
    assert code == 2
    assert "there is a reproduction in out; go on with: dpbench reproduce --resume out" in err


def test_a_full_disk_exits_2_with_one_line(dpbench, monkeypatch):
    dpbench("reproduce", "one", "two", "-o", "out", launcher=FakeLauncher({("memory", "opacus"): interrupted}))

    def full(path, *rest, **more):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        code, _, err = dpbench("reproduce", "--resume", "out")
    assert code == 2
    assert err.splitlines()[-1] == (
        "dpbench: cannot write out/reproduction.json: No space left on device; "
        "go on with: dpbench reproduce --resume out"
    )
    assert dpbench("reproduce", "--resume", "out")[0] == 0


def test_results_on_a_full_disk_exit_2_and_the_whole_is_gone_on_with(dpbench, monkeypatch):
    write_bytes = os.write

    def full(descriptor, data):
        if b'"parity"' in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_bytes(descriptor, data)

    for words in (["two", "-o", "an out"], ["--resume", "an out"]):
        with monkeypatch.context() as patched:
            patched.setattr("dpbench.store.os.write", full)
            code, _, err = dpbench("reproduce", *words)
        assert code == 2
        assert "No space left on device. 0 of 3 cells are safe in it" in err
        assert err.endswith("make room and go on with: dpbench reproduce --resume 'an out'\n")
    assert dpbench("reproduce", "--resume", "an out")[0] == 0


@pytest.mark.parametrize("left", [b"", b'{"dpbench":4,"ki', b"\0" * 9], ids=["empty", "torn", "zeros"])
def test_a_file_that_a_crash_left_without_a_header_is_removed_and_said(dpbench, left):
    dpbench("reproduce", "one", "two", "-o", "out", launcher=FakeLauncher({("memory", "opacus"): interrupted}))
    (begun,) = Path("out").glob("*.jsonl")
    lost = begun.with_name("two.1.small-20300101T000000Z.jsonl")
    lost.write_bytes(left)
    code, out, err = dpbench("reproduce", "--resume", "out")
    assert (code, lost.exists(), begun.exists()) == (0, False, True)
    assert err.count(f"removed {lost}: a crash left it without a header, and nothing was measured in it") == 1
    assert "2 of 2 figures" in out


def test_a_file_of_another_kind_is_never_removed(dpbench):
    dpbench("reproduce", "two", "-o", "out", launcher=FakeLauncher({("memory", "opacus"): interrupted}))
    other = Path("out/notes.jsonl")
    other.write_text("mine")
    code, _, err = dpbench("reproduce", "--resume", "out")
    assert (code, other.read_text()) == (2, "mine")
    assert "out/notes.jsonl, line 1: not a results file of dpbench: got 'mine'" in err


def test_a_directory_that_cannot_be_made_exits_2_with_one_line(dpbench, tmp_path):
    (tmp_path / "file").touch()
    code, _, err = dpbench("reproduce", "two", "-o", "file/out")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "cannot make the directory file/out: Not a directory" in err


def test_the_page_shows_figures_and_results(tmp_path):
    results = [read_results(write(tmp_path, [record("bk")]))]
    text = PAGE_OF(reproduction(figure(value("bk", (80.0, 90.0)))), results, tmp_path).read_text()
    assert "Reproduced: p" in text
    assert results[0].path.name in text


def test_where_nobody_listens_it_goes_on(capfd):
    shown, closed = [], [OSError(errno.EPIPE, os.strerror(errno.EPIPE))]

    class Shown:
        def on(self, event):
            shown.append(event)
            raise closed[0]

    def events():
        yield 1
        yield 2
        shown.append("end")

    with open(os.devnull, "w") as stdout, contextlib.redirect_stdout(stdout):
        command.follow(events(), Shown())
    assert shown == [1, "end"]
    assert "the run goes on" in capfd.readouterr().err


def test_a_report_of_a_reproduction_with_and_without_results_and_of_its_file(tmp_path):
    write_reproduction(reproduction(figure()), tmp_path)
    for named in (tmp_path, tmp_path / FILE):
        results, found = gathered([str(named)])
        assert (results, found) == ([], reproduction(figure()))
    path = write(tmp_path, [record("bk")])
    for named in ([tmp_path], [tmp_path / FILE], [tmp_path, tmp_path / FILE]):
        results, found = gathered([str(one) for one in named])
        assert ([one.path for one in results], found) == ([path], reproduction(figure()))


def test_two_reproductions_in_one_report_are_refused(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_reproduction(reproduction(), tmp_path / name)
    with pytest.raises(DpbenchError, match=r"got 2 reproductions \(.*a.*b.*\), expected one in a report"):
        gathered([str(tmp_path / "a"), str(tmp_path / "b")])


def test_a_paper_that_is_named_is_what_is_reproduced(dpbench):
    code, out, _ = dpbench("reproduce", "--list", "--paper", "papers/mine.toml", "--json")
    assert code == 0
    assert [f["paper"] for f in json.loads(out)] == ["mine", "mine"]
    code, out, _ = dpbench("reproduce", "gpt2-e2e", "--list", "--paper", "papers/mine.toml", "--json")
    assert [f["id"] for f in json.loads(out)] == ["gpt2-e2e"]


def test_without_what_makes_pages_nothing_is_measured(dpbench, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    launcher = FakeLauncher()
    code, _, error = dpbench("reproduce", "mine/*", launcher=launcher)
    assert (code, launcher.jobs) == (2, [])
    assert "jinja2 is not installed" in error
    assert dpbench("reproduce", "mine/*", "--no-measure", "--json")[0] == 0, "no page is made there"


def test_a_page_that_cannot_be_written_does_not_hide_that_a_cell_failed(dpbench, monkeypatch):
    def full(*_):
        raise DpbenchError("cannot write the report")

    monkeypatch.setattr(command, "page_of", full)
    assert dpbench("reproduce", "one", "-o", "whole")[0] == 2
    code, _, error = dpbench("reproduce", "one", "-o", "out", launcher=FakeLauncher({("memory", "bk"): "dies"}))
    assert code == 3
    assert "cannot write the report" in error
