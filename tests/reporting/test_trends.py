import json
from dataclasses import replace

import pytest

from dpbench.figures import FIGURES
from dpbench.history import Change, History, history
from dpbench.records import Outcome, Traced
from dpbench.reporting import trends
from dpbench.results import read
from dpbench.shift import Interval
from tests.records_for_tests import PARTIAL, nights, record, rounds_of


def made(paths, *options):
    return history([read(p) for p in paths], *options)


def stepping(n):
    return [
        record("nonprivate", seconds=rounds_of(0.1, n), source=""),
        record("bk", seconds=rounds_of(0.1 * (1.25 if n >= 9 else 1), n + 100), source="new" if n >= 9 else "old"),
    ]


def worded(ratio, value="seconds", was="", now=""):
    return trends.words(Change(0, 1, ratio, was, now), History(FIGURES[value], None, (), ()))


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (Interval(1.22, 1.18, 1.26), "1.22x slower [1.18, 1.26]"),
        (Interval(0.5, 0.4, 0.8), "2.00x faster [1.25, 2.50]"),
        (Interval(1.22), "1.22x slower (too few runs on one side for an interval)"),
    ],
)
def test_a_measured_change_says_how_much_and_how_sure(ratio, said):
    assert worded(ratio) == said


@pytest.mark.parametrize(
    ("ratio", "was", "now", "said"),
    [
        (1.5, "1000", "1500", "1.50x more FLOPs (1,000 -> 1,500)"),
        (0.5, "1000", "500", "2.00x fewer FLOPs (1,000 -> 500)"),
        (1.001, "1000", "1001", "0.10 % more FLOPs (1,000 -> 1,001)"),
        (float("inf"), "0", "7", "more FLOPs (0 -> 7)"),
        (0.0, "7", "0", "fewer FLOPs (7 -> 0)"),
    ],
)
def test_a_counted_change_says_the_numbers(ratio, was, now, said):
    assert worded(Interval(ratio), "traced_flops", was, now) == said


def test_an_outcome_says_what_it_was():
    assert worded(None, was="ok", now="out of memory") == "ok -> out of memory"


def test_below_a_cell_stand_its_change_and_what_differed(tmp_path):
    text = trends.lines(made(nights(tmp_path, 14, stepping)))
    assert text[0] == "14 runs of nightly, 2030-01-01 to 2030-01-14"
    assert text[1].startswith("time of a step, relative to nonprivate in each run")
    assert text[3].split() == ["trend", "first", "last", "runs", "cell"]
    assert text[4].split() == ["_________#####", "1.00", "1.25", "14", "bk", "on", "transformers:gpt2", "B=8"]
    assert "x slower [1.2" in text[5]
    assert text[5].endswith("] since nightly-20300110T020000Z.jsonl (2030-01-10)")
    assert text[6].strip() == "from nightly-20300109T020000Z.jsonl: source of bk old -> new"
    assert text[7].endswith("14  nonprivate on transformers:gpt2 B=8")
    assert "2 cells, of which 1 changed" in text
    assert all(line.isascii() for line in text)
    assert "▁▁▁▁▁▁▁▁▁█████" in trends.lines(made(nights(tmp_path / "u", 14, stepping)), unicode=True)[4]


def test_where_nothing_differs_that_is_said_and_why_an_outcome_changed(tmp_path):
    became = [Outcome.OK, Outcome.OUT_OF_MEMORY]
    paths = nights(tmp_path, 2, lambda n: [record(outcome=became[n], reason="the limit of 5.0 GB")])
    text = trends.lines(made(paths))
    assert text[4].split()[:3] == ["_x", "500", "ms"]
    assert "OOM" in text[4]
    assert [line.strip() for line in text[5:8]] == [
        "ok -> out of memory since nightly-20300102T020000Z.jsonl (2030-01-02)",
        "the limit of 5.0 GB",
        "from nightly-20300101T020000Z.jsonl: nothing that is recorded differs",
    ]
    assert "x in a trend: a run without a figure" in text


def test_an_implementation_that_is_the_same_is_said_to_be(tmp_path):
    became = [Outcome.OK, Outcome.FAILED]

    def environment(n):
        return {"versions": {"torch": f"2.{14 + n}.0"}, "dpbench": {"revision": "abc"}}

    found = made(nights(tmp_path, 2, lambda n: [record(outcome=became[n])], environment))
    assert "20300101T020000Z.jsonl: torch 2.14.0 -> 2.15.0, source of bk unchanged" in "\n".join(trends.lines(found))
    assert trends.as_object(found.series[0], found)["points"][0]["revision"] == "abc"


def test_seconds_as_they_are_are_said_to_share_no_clock(tmp_path):
    text = trends.lines(made(nights(tmp_path, 2, stepping), "seconds", "none"))
    assert text[1] == "time of a step, as it is, though two runs share no clock (--relative-to nonprivate)"
    assert trends.lines(made(nights(tmp_path / "m", 2, stepping), "memory"))[1] == FIGURES["memory"].title


def test_too_few_runs_are_said(tmp_path):
    text = "\n".join(trends.lines(made(nights(tmp_path, 9, stepping))))
    assert "2 of them have fewer than 10 figures: too few to tell a change from chance" in text
    assert "too few" not in "\n".join(trends.lines(made(nights(tmp_path / "more", 10, stepping))))


def test_machines_are_said(tmp_path):
    paths = nights(tmp_path, 4, stepping, lambda n: {"machine": {"id": f"m{n % 2}"}})
    text = "\n".join(trends.lines(made(paths, "seconds", "none")))
    assert "2  bk on transformers:gpt2 B=8 on machine m1\n" in text
    assert "several machines: each is followed on its own" in text
    assert "several machines: ratios within a run are compared" in "\n".join(trends.lines(made(paths)))


def test_what_was_left_out_is_said_beside_the_figures(tmp_path):
    def partly(n):
        return [record(seconds=rounds_of(0.1 * (1.25 if n >= 9 else 1), n), coverage=PARTIAL)]

    text = "\n".join(trends.lines(made(nights(tmp_path, 14, partly))))
    assert "], where not all parameters were trained, since nightly-" in text
    assert "12 % of the parameters got no gradient: cls_token, pos_embed" in text


def test_a_figure_that_no_run_has_names_the_others(tmp_path):
    text = trends.lines(made(nights(tmp_path, 2, stepping), "traced_flops"))
    assert text[1] == "FLOPs of a step, counted in a trace"
    assert text[-1].startswith("no run has a figure of this kind; --value takes seconds, memory")


def test_objects_are_strict_json_with_every_point_and_change(tmp_path):
    flops = [0, 5]

    def counted(n):
        return [replace(record(), traced=Traced(flops=flops[n], bytes=1, peak=1))]

    found = made(nights(tmp_path, 2, counted), "traced_flops")
    (one,) = json.loads(json.dumps([trends.as_object(s, found) for s in found.series], allow_nan=False))
    assert [(p["value"], p["outcome"], p["coverage"], p["source"]) for p in one["points"]] == [
        (0, "ok", 1.0, "abc123"),
        (5, "ok", 1.0, "abc123"),
    ]
    (change,) = one["changes"]
    assert (change["was"], change["now"], change["ratio"]) == ("0", "5", None)
    assert change["since"].endswith("nightly-20300102T020000Z.jsonl")
    assert (change["before_started"], change["what"]) == ("2030-01-01T02:00:00+00:00", "more FLOPs (0 -> 5)")
    assert (one["implementation"], one["workload"]["batch"], one["unit"], one["relative_to"]) == ("bk", 8, "FLOP", None)
