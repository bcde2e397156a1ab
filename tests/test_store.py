import errno
import os
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from dpbench import store
from dpbench.comparison import compare
from dpbench.errors import DpbenchError
from dpbench.records import Cell, Metric, Outcome, Roofline, Round, Traced
from dpbench.state import State
from dpbench.timed import AGAIN, CONTROL, SECONDS
from tests.records_for_tests import ENVIRONMENT, record, workload, write

NAMES = ["nonprivate", "bk", "opacus"]
CELLS = [Cell(name, workload()) for name in NAMES]
SOURCES = dict.fromkeys(NAMES, "abc123")
RECORDS = [record(name) for name in NAMES]
COMMAND = "dpbench run made-up"


def begun(directory, number=1, cells=CELLS):
    """A file of a run over CELLS in which the first ``number`` records are done."""
    with store.create("made-up", cells, ENVIRONMENT, COMMAND, directory) as writer:
        for made in RECORDS[:number]:
            writer.append(made)
    return writer.path


def resumed(path, cells=CELLS, environment=ENVIRONMENT, sources=SOURCES, say=print):
    return store.open_for_resume(path, cells, environment, sources, say)


def test_what_is_written_is_read(tmp_path):
    results = store.read(write(tmp_path, RECORDS))
    assert results.records == tuple(RECORDS)
    assert results.header.cells == tuple(CELLS)
    assert results.header.environment == ENVIRONMENT
    assert (results.missing, results.torn) == ((), "")


def test_each_record_is_on_the_disk_at_once(tmp_path):
    with store.create("made-up", CELLS, ENVIRONMENT, COMMAND, tmp_path) as writer:
        for i, made in enumerate(RECORDS):
            writer.append(made)
            assert len(store.read(writer.path).records) == i + 1


def test_a_new_run_never_writes_over_a_file(tmp_path):
    moment = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    names = []
    for _ in range(3):
        with store.create("a b/c", CELLS, ENVIRONMENT, COMMAND, tmp_path, moment) as writer:
            names.append(writer.path.name)
    stem = "a-b-c-20300102T030405Z"
    assert names == [f"{stem}.jsonl", f"{stem}-2.jsonl", f"{stem}-3.jsonl"]


def test_resuming_adds_what_is_missing(tmp_path):
    path = begun(tmp_path)
    assert store.read(path).missing == tuple(CELLS[1:])
    with resumed(path) as writer:
        assert list(writer.done) == CELLS[:1]
        for made in RECORDS[1:]:
            writer.append(made)
    assert store.read(path).records == tuple(RECORDS)


def test_of_a_cell_that_was_run_twice_the_later_record_counts(tmp_path):
    path = begun(tmp_path, 2)
    again = replace(RECORDS[0], reason="again")
    with resumed(path) as writer:
        writer.append(again)
    assert store.read(path).records == (RECORDS[1], again)


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_line_is_reported_and_cut_off_on_resume(tmp_path, cut):
    path = begun(tmp_path, 2)
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    results = store.read(path)
    assert results.records == (RECORDS[0],)
    assert f"{path}, line 3: incomplete" in results.torn
    assert path.read_bytes() == content[:-cut]
    said = []
    with resumed(path, say=said.append) as writer:
        assert "cutting it off" in said[0]
        writer.append(RECORDS[1])
    assert path.read_bytes() == content


def test_a_last_line_of_zeros_is_torn(tmp_path):
    path = begun(tmp_path)
    path.write_bytes(path.read_bytes() + b"\0" * 100 + b"\n")
    assert store.read(path).records == (RECORDS[0],)
    assert "incomplete" in store.read(path).torn


def test_a_second_writer_is_refused(tmp_path):
    with store.create("made-up", CELLS, ENVIRONMENT, COMMAND, tmp_path) as writer:
        with pytest.raises(DpbenchError, match=f"another run holds {writer.path}"):
            resumed(writer.path)
    resumed(writer.path).close()


def test_a_refused_resume_lets_go_of_the_lock(tmp_path):
    path = begun(tmp_path)
    with pytest.raises(DpbenchError):
        resumed(path, cells=CELLS[:1])
    resumed(path).close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"environment": {"machine": {"id": "m2"}}},
            r"made on another machine \(m1; this is m2\).*without --resume",
        ),
        ({"sources": {"nonprivate": "new"}}, "the source of nonprivate has changed"),
        ({"cells": CELLS[:2]}, "1 cells are only in the file: opacus on transformers:gpt2 B=8"),
        (
            {"cells": [*CELLS, Cell("bk", workload(batch=9))]},
            "only in this run: bk on transformers:gpt2 B=9",
        ),
    ],
)
def test_figures_that_may_not_be_compared_do_not_go_into_one_file(tmp_path, change, message):
    path = begun(tmp_path)
    before = path.read_bytes()
    with pytest.raises(DpbenchError, match=message):
        resumed(path, **change)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"has no whole header \(0 bytes\).*: remove it, and start that run anew"),
        ('{"dpbench":4,"kind', r"has no whole header \(18 bytes\)"),
        ('{"dpb\0\0', r"has no whole header \(7 bytes\)"),
        ("hello", "line 1: not a results file of dpbench: got 'hello'"),
        ("hello\nworld\n", "line 1: not a results file of dpbench: got 'hello'"),
        ('{"a": 1}\n', "line 1: not a results file"),
        (
            '{"dpbench": 9, "kind": "header"}\n',
            "line 1: written by a newer dpbench, schema 9; this reads up to 4",
        ),
        ('{"dpbench": 1, "kind": "header"}\n', "line 1: header.command is missing"),
        (b"\x80\x81\n".decode("latin1"), "not a results file"),
    ],
)
def test_a_file_that_is_not_ours_is_refused(tmp_path, content, message):
    path = tmp_path / "x.jsonl"
    path.write_text(content, encoding="latin1")
    with pytest.raises(DpbenchError, match=message) as caught:
        store.read(path)
    assert str(path) in str(caught.value)


def test_corruption_in_the_middle_is_refused_with_its_line(tmp_path):
    path = begun(tmp_path, 2)
    lines = path.read_text().splitlines()
    lines[1] = lines[1][:50]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DpbenchError, match=f"{path}, line 2: .*head -n 1"):
        store.read(path)


def test_a_record_of_a_newer_schema_is_refused_even_as_the_last(tmp_path):
    path = begun(tmp_path)
    path.write_text(path.read_text() + '{"schema": 5}\n')
    with pytest.raises(DpbenchError, match="line 3: written by a newer dpbench, schema 5"):
        store.read(path)


def test_a_full_disk_loses_nothing_that_was_finished(tmp_path, monkeypatch):
    path = begun(tmp_path)
    before = path.read_bytes()
    write_bytes = os.write

    def half(descriptor, data):
        if len(data) < 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_bytes(descriptor, data[: len(data) - 50])

    with resumed(path) as writer:
        monkeypatch.setattr(store.os, "write", half)
        with pytest.raises(DpbenchError, match=r"No space left.* 1 of 3 cells are safe.*--resume"):
            writer.append(RECORDS[1])
    assert path.read_bytes() == before


def test_a_full_disk_at_the_start_leaves_no_file(tmp_path, monkeypatch):
    def full(descriptor, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store.os, "write", full)
    for go_on, said in (("", "make room first"), ("repeat: it", "make room and repeat: it")):
        with pytest.raises(DpbenchError, match=f"No space left on device; {said}$"):
            store.create("made-up", CELLS, ENVIRONMENT, COMMAND, tmp_path, go_on=go_on)
    assert not list(tmp_path.iterdir())


def test_the_latest_file_is_the_one_written_to_last(tmp_path):
    first, second = begun(tmp_path), begun(tmp_path)
    os.utime(first, ns=(10**18, 10**18))
    os.utime(second, ns=(2 * 10**18, 2 * 10**18))
    assert store.latest(tmp_path) == second
    os.utime(first, ns=(3 * 10**18, 3 * 10**18))
    assert store.latest(tmp_path) == first


def test_without_results_the_remedy_is_named(tmp_path):
    with pytest.raises(DpbenchError, match="make some with: dpbench run quickstart"):
        store.latest(tmp_path / "results")


def test_a_missing_file_is_named(tmp_path):
    for read in (store.read, resumed):
        with pytest.raises(DpbenchError, match=r"nothing.jsonl: No such file"):
            read(tmp_path / "nothing.jsonl")


def test_a_directory_that_is_a_file_is_named(tmp_path):
    (tmp_path / "results").write_text("")
    with pytest.raises(DpbenchError, match="is a file, expected a directory"):
        store.create("made-up", CELLS, ENVIRONMENT, COMMAND, tmp_path / "results")


def test_the_environment_stands_once_in_a_file_and_is_in_every_record(tmp_path):
    environment = {"machine": {"id": "m1"}, "settings": {"measure": ["memory"]}}
    with store.create("s", CELLS, environment, "c", tmp_path) as writer:
        writer.append(replace(RECORDS[0], environment=environment))
        writer.append(replace(RECORDS[1], environment={"machine": {"id": "m1"}, "versions": {"torch": "9"}}))
    assert '"environment"' not in writer.path.read_text().splitlines()[1]
    first, second = store.read(writer.path).records
    assert first.environment == environment
    assert second.environment["versions"] == {"torch": "9"}


def measured(name, rounds=20, samples=200, seed=0):
    """A record as a long run makes it."""
    draws = np.random.default_rng(seed)
    taken = tuple(tuple(round(float(s), 9) for s in draws.lognormal(-5, 0.03, samples)) for _ in range(rounds))
    at = tuple(tuple(round(0.01 * i, 6) for i in range(samples)) for _ in range(rounds))
    state = State(others=0.1, load=1.5, mhz=2400.0, throttled=())
    made = record(name)
    return replace(
        made,
        metrics={**made.metrics, SECONDS: Metric("s", taken, at), **{m: Metric("s", taken) for m in (AGAIN, CONTROL)}},
        rounds=tuple(Round(started=1e9, warm_up=4, settled=True, state=state) for _ in range(rounds)),
        traced=Traced(
            flops=123_456_789_012, bytes=98_765_432_100, peak=1_234_567_890, modules={"1": 5, "2a": 4, "2b": 3}
        ),
    )


def test_what_is_accepted_is_small_and_compares_as_the_original_does(tmp_path):
    original = store.read(write(tmp_path, [measured("nonprivate"), measured("bk", seed=1)]))
    path = store.accept(original, tmp_path / "base.jsonl")
    header, *lines = path.read_bytes().splitlines()
    assert all(len(line) < 2500 for line in lines)
    later = store.read(write(tmp_path, [measured("nonprivate", seed=2), measured("bk", seed=3)]))
    accepted = [c.as_json() for c in compare(store.read(path), later)]
    assert accepted == [c.as_json() for c in compare(original, later)]


def test_a_round_that_was_lost_stays_lost_so_that_others_keep_their_partners(tmp_path):
    lost = record("bk", seconds=((1.0,), (), (3.0,)))
    accepted = store.read(store.accept(store.read(write(tmp_path, [lost])), tmp_path / "base.jsonl"))
    assert accepted.records[0].metrics[SECONDS].samples == ((1.0,), (), (3.0,))


def test_accepting_replaces_the_base_in_one_step_or_not_at_all(tmp_path, monkeypatch):
    base = store.accept(store.read(write(tmp_path, RECORDS)), tmp_path / "base.jsonl")
    before = base.read_bytes()
    new = store.read(write(tmp_path, RECORDS[:1], "new"))

    def full(self, *rest):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store.Path, "replace", full)
        with pytest.raises(DpbenchError, match="No space left on device; it is as it was"):
            store.accept(new, base)
    with monkeypatch.context() as patch:
        patch.setattr(store.os, "fsync", full)
        with pytest.raises(DpbenchError, match="it is as it was"):
            store.accept(new, base)
    assert base.read_bytes() == before
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]
    store.accept(new, base)
    assert len(store.read(base).records) == 1


def test_results_that_are_not_whole_or_not_sound_are_no_base(tmp_path):
    with pytest.raises(DpbenchError, match=r"lacks 2 of 3 cells \(bk on .*dpbench run --resume"):
        store.accept(store.read(begun(tmp_path)), tmp_path / "base.jsonl")
    failed = store.read(write(tmp_path, [record("bk", outcome=Outcome.FAILED)]))
    with pytest.raises(DpbenchError, match="1 cells of .* failed, were wrong or timed out"):
        store.accept(failed, tmp_path / "base.jsonl")
    assert not (tmp_path / "base.jsonl").exists()
    expected = write(tmp_path, [record("bk", outcome=Outcome.OUT_OF_MEMORY), record("vmap", outcome=Outcome.REFUSED)])
    assert store.accept(store.read(expected), tmp_path / "base.jsonl").exists()


def test_one_side_of_a_comparison_is_not_gone_on_with_alone(tmp_path):
    with store.create("ab", CELLS, ENVIRONMENT, "dpbench ab --base bk", tmp_path, run="r1") as writer:
        pass
    with pytest.raises(DpbenchError, match="one side of a comparison.*Repeat: dpbench ab --base bk"):
        resumed(writer.path)


def test_what_is_accepted_has_no_roofline_which_is_the_machine_s(tmp_path):
    traced = Traced(flops=3, bytes=2, peak=1, roofline=Roofline("here", 1.0, 2.0, 3.0))
    made = [replace(record("bk"), traced=traced), record("vmap")]
    accepted = store.read(store.accept(store.read(write(tmp_path, made)), tmp_path / "base.jsonl"))
    assert [r.traced for r in accepted.records] == [replace(traced, roofline=None), None]
