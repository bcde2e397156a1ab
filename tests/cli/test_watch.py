import errno
import os
from dataclasses import replace

from rich.console import Console

from dpbench.cli.live import Live
from dpbench.cli.watch import Json, Lines, formulas, line_of
from dpbench.records import Cell, Outcome, from_json
from dpbench.rows import rows
from dpbench.runner import Progress
from dpbench.store import read
from dpbench.sweep import Started
from tests.records_for_tests import record, workload, write

ENVIRONMENT = {
    "machine": {"id": "m1", "cpu": "a made-up CPU", "cores": 2, "memory_gib": 8, "gpus": []},
    "versions": {"python": "3.11", "torch": "2.9.0"},
    "flags": {"threads": 2},
}
RECORDS = [
    record("nonprivate"),
    record("bk", seconds=((1.0,), (1.0,), (1.0,))),
    record("vmap", outcome=Outcome.REFUSED, reason="not a\nmodel for vmap"),
]


def started(tmp_path, done=()):
    path = write(tmp_path, RECORDS)
    cells = tuple(r.cell for r in RECORDS)
    return Started(path=path, cells=cells, done=tuple(done), environment=ENVIRONMENT)


def test_lines_come_one_for_each_record_and_the_summary_last(tmp_path):
    said = []
    shown = Lines(said.append)
    shown.on(started(tmp_path))
    heading = len(said)
    for i, one in enumerate(RECORDS):
        shown.on(Progress(one.cell.workload, "bk", "memory", 0.5))
        shown.on(one)
        assert any(f"[{i + 1}/3] {one.cell.implementation}" in line for line in said)
    assert "a made-up CPU" in "\n".join(said[:heading])
    shown.end()
    text = "\n".join(said)
    assert "3 cells: 2 ok, 1 refused" in text
    assert str(read(tmp_path / next(tmp_path.glob("*.jsonl")).name).path) in text


def test_without_room_for_plots_the_summary_is_there_and_says_so(tmp_path, monkeypatch):
    def full(made, beside):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("dpbench.reporting.plots.draw_all", full)
    said = []
    shown = Lines(said.append)
    shown.on(started(tmp_path))
    shown.end()
    text = "\n".join(said)
    assert "3 cells: 2 ok, 1 refused" in text
    assert "no plots: No space left on device; make room and have them drawn with: dpbench run --resume" in text


def test_who_clips_with_a_constant_of_his_own_is_named():
    cells = [Cell(name, workload()) for name in ("bk", "lib:opacus/hooks", "opacus", "lib:opacus/ghost")]
    plain, own = formulas(cells)
    assert plain.startswith("C_i = min(1, 1 / ||g_i||);")
    assert own.startswith("C_i = min(1, 1 / (||g_i|| + 1e-06));")
    assert own.endswith("(lib:opacus/hooks, lib:opacus/ghost)")


def test_resuming_says_how_much_is_done(tmp_path):
    said = []
    Lines(said.append).on(started(tmp_path, RECORDS[:2]))
    assert said[0].startswith("resuming, 2 of 3 done")


def test_a_result_in_a_line_has_its_ratio_or_its_reason():
    fast, slow, refused = map(line_of, rows(RECORDS))
    assert "x1.00" in fast
    assert "x0.50" in slow
    assert refused.split(maxsplit=1) == ["vmap", "refused: not a model for vmap"]


def test_the_search_for_the_largest_batch_is_told_and_the_batch_is_in_the_line(tmp_path, capsys):
    most = workload(batch="max")
    settings = {"settings": {"memory": "4GB"}}
    cells = (Cell("bk", most),)
    lines = []
    shown = Lines(lines.append)
    shown.on(Started(path=tmp_path / "r.jsonl", cells=cells, done=(), environment={**ENVIRONMENT, **settings}))
    shown.on(Progress(most, None, "largest batch", 0.0))
    shown.on(Progress(most, "bk", "largest batch", 0.0))
    shown.on(replace(record("bk", most), largest=39))
    assert "B=max: the largest physical batch whose step fits into 4GB, found by tracing" in lines
    assert "B=39" in lines[-1]
    assert capsys.readouterr().err == "  bk: its largest batch is traced\n"


def test_json_gives_records_only_the_old_ones_first(tmp_path, capsys):
    shown = Json()
    shown.on(started(tmp_path, RECORDS[:1]))
    shown.on(Progress(workload(), "bk", "memory", 0.5))
    shown.on(RECORDS[1])
    shown.say("a remark")
    shown.end()
    out, error = capsys.readouterr()
    assert [from_json(line) for line in out.splitlines()] == RECORDS[:2]
    assert error == "a remark\n"


def test_the_live_table_shows_who_is_at_work_and_leaves_the_summary(tmp_path):
    console = Console(force_terminal=True, width=110, height=50, record=True)
    with Live(console) as shown:
        shown.on(started(tmp_path))
        shown.on(RECORDS[2])
        shown.on(Progress(workload(), "bk", "round 1 of 3", 0.5))
        with console.capture() as capture:
            console.print(shown._draw())
        screen = capture.get()
        assert "round 1 of 3" in screen
        assert "refused" in screen
        assert "50%" in screen
        shown.on(RECORDS[0])
        shown.on(RECORDS[1])
        shown.end()
    text = console.export_text()
    assert "3 cells: 2 ok, 1 refused" in text
    assert text.count("not a model for vmap") >= 1


def test_an_interrupted_run_says_how_to_go_on(tmp_path, capsys):
    event = started(tmp_path)
    shown = Lines(lambda text: None)
    shown.on(event)
    shown.on(RECORDS[0])
    shown.interrupted()
    assert f"1 of 3 cells are done; go on with: dpbench run --resume {event.path}" in capsys.readouterr().err
