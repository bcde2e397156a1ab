import re
from dataclasses import replace
from datetime import timedelta

import pytest

from dpbench.coverage import Coverage
from dpbench.errors import DpbenchError, EmptySelection
from dpbench.history import history
from dpbench.records import Outcome, Traced
from dpbench.results import read
from tests.records_for_tests import FIRST_NIGHT, PARTIAL, nights, record, rounds_of, workload


def followed(paths, *options, **named):
    """The history of files, with the series by implementation."""
    found = history([read(p) for p in paths], *options, **named)
    return found, {s.cell.implementation: s for s in found.series}


def pair(night, slower=1.0, on=None, seed=0, **named):
    """Non-private training and bk, on a machine that is slower every other night."""
    base = 0.1 * (1 + 0.3 * (night % 2))
    return [
        record("nonprivate", on, seconds=rounds_of(base, night + seed), **named),
        record("bk", on, seconds=rounds_of(base * 1.05 * slower, 1000 + night + seed), **named),
    ]


def where(series):
    return [(c.before, c.after) for c in series.changes]


def test_runs_are_in_the_order_of_their_start_and_each_once(tmp_path):
    paths = nights(tmp_path, 4, pair)
    found, series = followed([paths[2], paths[0], paths[3], paths[1], paths[0]])
    assert [r.path for r in found.runs] == paths
    assert [p.file for p in series["bk"].points] == [str(p) for p in paths]
    assert series["bk"].points[1].started == FIRST_NIGHT + timedelta(days=1)


def test_a_ratio_shows_what_the_moods_of_a_machine_hide(tmp_path):
    paths = nights(tmp_path, 16, lambda n: pair(n, slower=1.2 if n >= 10 else 1.0))
    found, series = followed(paths)
    assert found.baseline == "nonprivate"
    assert where(series["bk"]) == [(9, 10)]
    (change,) = series["bk"].changes
    assert change.ratio.value == pytest.approx(1.2, rel=0.01)
    assert change.ratio.low < 1.2 < change.ratio.high
    assert series["nonprivate"].changes == ()
    absolute, series = followed(paths, "seconds", "none")
    assert absolute.baseline is None
    assert series["bk"].changes == ()


def test_seconds_are_relative_only_where_every_file_has_the_baseline(tmp_path):
    paths = nights(tmp_path, 3, lambda n: pair(n)[n == 1 :])
    assert followed(paths)[0].baseline is None
    assert followed(paths, "seconds", "nonprivate")[0].baseline == "nonprivate"
    assert followed(paths, "memory")[0].baseline is None


def test_a_run_without_its_baseline_has_no_figure(tmp_path):
    paths = nights(tmp_path, 3, lambda n: pair(n)[n == 1 :])
    _, series = followed(paths, "seconds", "nonprivate")
    assert [p.figure is None for p in series["bk"].points] == [False, True, False]


def test_a_change_below_the_least_effect_is_not_told(tmp_path):
    for effect, told in ((1.02, 0), (1.06, 1)):
        paths = nights(tmp_path / str(effect), 20, lambda n, e=effect: pair(n, slower=e if n >= 10 else 1.0))
        assert len(followed(paths)[1]["bk"].changes) == told


def test_of_a_drift_every_change_is_of_the_least_effect(tmp_path):
    paths = nights(tmp_path, 30, lambda n: pair(n, slower=1.005**n))
    changes = followed(paths)[1]["bk"].changes
    assert changes
    assert all(c.ratio.value >= 1.03 for c in changes)


def test_one_slow_night_is_no_change(tmp_path):
    paths = nights(tmp_path, 14, lambda n: pair(n, slower=2.0 if n == 7 else 1.0))
    assert followed(paths)[1]["bk"].changes == ()


def test_every_outcome_that_differs_is_a_change(tmp_path):
    became = [Outcome.OK, Outcome.OK, Outcome.OUT_OF_MEMORY, Outcome.OUT_OF_MEMORY, Outcome.REFUSED]
    paths = nights(tmp_path, 5, lambda n: [record("bk", outcome=became[n], reason="for a reason")])
    changes = followed(paths)[1]["bk"].changes
    assert [(c.before, c.after, c.was, c.now) for c in changes] == [
        (1, 2, "ok", "out of memory"),
        (3, 4, "out of memory", "refused"),
    ]
    assert all(c.ratio is None for c in changes)


def test_coverage_that_differs_is_a_change(tmp_path):
    covered = [PARTIAL, PARTIAL, Coverage(100, 89), Coverage(100, 100), None]
    paths = nights(tmp_path, 5, lambda n: [record("bk", coverage=covered[n])])
    assert [(c.after, c.was, c.now) for c in followed(paths)[1]["bk"].changes] == [
        (2, "ok, 88 of 100 parameters trained", "ok, 89 of 100 parameters trained"),
        (3, "ok, 89 of 100 parameters trained", "ok"),
    ]


def test_what_is_counted_changes_wherever_it_differs_and_on_every_machine(tmp_path):
    flops = [1000, 1000, 1001, None, 1001, 900]

    def made(n):
        return [replace(record(), traced=flops[n] and Traced(flops=flops[n], bytes=1, peak=1))]

    paths = nights(tmp_path, 6, made, lambda n: {"machine": {"id": f"m{n % 2}"}})
    found, series = followed(paths, "traced_flops")
    assert [(c.before, c.after, c.ratio.value) for c in series["bk"].changes] == [(1, 2, 1.001), (4, 5, 900 / 1001)]
    assert len(found.series) == 1


def test_machines_are_followed_each_on_its_own_unless_ratios_are(tmp_path):
    """One is twice as fast as the other: no change of either."""

    def made(n):
        return [record(seconds=rounds_of(0.1 * (1 + (n >= 12)), n)), record("nonprivate", seconds=rounds_of(0.1, n))]

    def machines(n):
        return {"machine": {"id": "new" if n >= 12 else "old", "cpu": "another" if n >= 12 else "one"}}

    paths = nights(tmp_path, 24, made, machines)
    found, _ = followed(paths, "seconds", "none")
    bk = [s for s in found.series if s.cell.implementation == "bk"]
    assert {(s.machine, len(s.points), len(s.changes)) for s in bk} == {("old", 12, 0), ("new", 12, 0)}
    series = followed(paths)[1]["bk"]
    assert (series.machine, len(series.points), where(series)) == (None, 24, [(11, 12)])
    assert series.changes[0].differences == ("machine cpu one -> another",)


def test_what_differs_between_the_two_runs_is_listed(tmp_path):
    def environment(n):
        new = n >= 2
        return {
            "machine": {"id": "m1", "cpu": "one"},
            "versions": {"torch": "2.15.0" if new else "2.14.1", "numpy": "2.4.6"} | ({"peft": "0.21"} if new else {}),
            "flags": {"OMP_NUM_THREADS": None if new else "1"},
            "dpbench": {"version": "0.1.0", "revision": ("a" if new else "b") * 40 + "+changes"},
            "settings": {"rounds": 6 if new else 3},
        }

    def made(n):
        outcome = Outcome.FAILED if n >= 2 else Outcome.OK
        one = record("bk", workload(batch="max"), outcome, source="s2" if n >= 2 else "s1")
        return [
            replace(
                one,
                largest=10 + (n >= 2),
                facts={"parameters": 10 + (n >= 2), "kind": "lm", "layers": [["w", 1, 2, n]]},
            )
        ]

    (change,) = followed(nights(tmp_path, 4, made, environment))[1]["bk"].changes
    assert change.differences == (
        "batch 10 -> 11",
        "source of bk s1 -> s2",
        "dpbench revision bbbbbbbbbbbb+changes -> aaaaaaaaaaaa+changes",
        "torch 2.14.1 -> 2.15.0",
        "OMP_NUM_THREADS 1 -> unset",
        "rounds 3 -> 6",
        "model's parameters 10 -> 11",
    )


def test_the_latest_and_then_the_largest_change_comes_first(tmp_path):
    since = {"opacus": (8, 1.3), "vmap": (13, 1.1), "ghostclip": (13, 1.5), "bk": (99, 1.0)}

    def made(n):
        slow = {name: by if n >= start else 1.0 for name, (start, by) in since.items()}
        rest = [record(name, seconds=rounds_of(0.2 * s, n + 100 * i)) for i, (name, s) in enumerate(slow.items())]
        return [record("nonprivate", seconds=rounds_of(0.1, 1000 + n)), *rest]

    found, series = followed(nights(tmp_path, 20, made))
    assert list(series) == ["ghostclip", "vmap", "opacus", "nonprivate", "bk"]


def test_cells_are_chosen_as_everywhere_and_their_baseline_is_still_there(tmp_path):
    paths = nights(tmp_path, 2, lambda n: [*pair(n), *pair(n, on=workload(batch=16))])
    found, series = followed(paths, selection="bk and B=16")
    assert [(s.cell.implementation, s.cell.workload.batch) for s in found.series] == [("bk", 16)]
    assert series["bk"].points[0].figure.value == pytest.approx(1.05, rel=0.02)
    with pytest.raises(EmptySelection, match="matches none of 4 cells"):
        followed(paths, selection="opacus")


def test_runs_without_a_record_are_an_empty_selection(tmp_path):
    (path,) = nights(tmp_path, 1, pair)
    path.write_text(path.read_text().splitlines()[0] + "\n")
    with pytest.raises(EmptySelection, match="no records in 1 files"):
        followed([path])


def test_mistakes_are_named(tmp_path):
    paths = nights(tmp_path, 2, pair)
    with pytest.raises(DpbenchError, match=r"unknown value 'memry'. Did you mean memory"):
        followed(paths, "memry")
    with pytest.raises(DpbenchError, match=r"unknown implementation to compare with 'bkk'. Did you mean bk"):
        followed(paths, "seconds", "bkk")
    with pytest.raises(DpbenchError, match="traced_flops cannot be given relative to bk"):
        followed(paths, "traced_flops", "bk")
    unsealed = re.sub(',"crc":"[0-9a-f]{8}"', "", paths[0].read_text())
    paths[0].write_text(unsealed.replace('"started":"2030-01-01T02:00:00+00:00"', '"started":"then"', 1))
    with pytest.raises(DpbenchError, match="was started 'then', expected a time such as"):
        followed(paths)
