"""Two sides in turns, with children that only say what they are told to: whoever fails, fails on its own side alone."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from dpbench.ab import Compared, Opened, ab, pairs_of
from dpbench.change import Verdict
from dpbench.comparison import compare
from dpbench.errors import DpbenchError, EmptySelection
from dpbench.interleaved import SEATS
from dpbench.records import Cell, Outcome, Workload
from dpbench.results import read
from dpbench.runner import Progress
from dpbench.sides import Side
from dpbench.slowdown import of_one_run
from dpbench.state import State
from dpbench.suite import Suite, from_options
from dpbench.timed import AGAIN, CONTROL, SECONDS, THROTTLED
from tests.children_in_turns import Stage, rounds_of
from tests.noisy_machine import WORKLOAD, unwatched

ROUNDS = 6


@pytest.fixture(autouse=True)
def _unwatched(monkeypatch):
    monkeypatch.setattr("dpbench.interleaved.watched", unwatched)


BASE, NEW = Side(name="before", checkout=None), Side(name="after", checkout=None)


def measured(stage, tmp_path, names=("bk", "opacus"), measure=("seconds",), rounds=ROUNDS, sides=(BASE, NEW), **how):
    """What is compared, by the new implementation, and all events."""
    suite = Suite(name="s", title="", rounds=rounds, budget_s=1.0, measure=measure)
    if "seconds" not in measure:
        stage.seats = ["base", "new"]
    cells = [(Cell(n, WORKLOAD), Cell(n, WORKLOAD)) for n in names]
    cells = how.pop("cells", cells)
    events = ab(
        suite,
        *sides,
        cells,
        directory=tmp_path,
        environment={"machine": {"id": "simulated"}},
        launchers=stage.launchers,
        **how,
    )
    seen = list(events)
    return {e.new.cell.implementation: e for e in seen if isinstance(e, Compared)}, seen


def verdict(pair):
    return of_one_run(pair.new.cell, pair.base, pair.new).verdict


def rounds_taken(record, metric=SECONDS):
    return len(record.metrics[metric].samples) if metric in record.metrics else 0


def test_both_sides_and_the_control_are_timed_in_every_round_and_what_is_the_same_is_so(tmp_path):
    stage = Stage()
    found, events = measured(stage, tmp_path)
    assert isinstance(events[0], Opened)
    for pair in found.values():
        assert [rounds_taken(pair.base), rounds_taken(pair.new)] == [ROUNDS, ROUNDS]
        assert [rounds_taken(pair.base, CONTROL), rounds_taken(pair.new, CONTROL)] == [ROUNDS, 0]
        assert verdict(pair) is Verdict.SAME
        assert rounds_taken(pair.new, AGAIN) == 0, "what is the same is not repeated"
    assert all(Counter(r) == dict.fromkeys(SEATS, 6) for r in rounds_of(stage.turns))
    assert not stage.alive()


def test_the_order_differs_from_round_to_round_and_is_the_same_the_next_time(tmp_path):
    orders = []
    for _ in range(2):
        stage = Stage()
        measured(stage, tmp_path, rounds=12)
        orders.append(rounds_of(stage.turns))
    assert orders[0] == orders[1]
    assert {r[0] for r in orders[0]} == set(SEATS)


@pytest.mark.parametrize(("factor", "expected"), [(1.2, Verdict.SLOWER), (0.8, Verdict.FASTER)])
def test_a_difference_is_repeated_before_it_counts_and_of_that_cell_alone(tmp_path, factor, expected):
    stage = Stage(factors={("new", "bk"): factor})
    found, _ = measured(stage, tmp_path)
    assert {name: verdict(pair) for name, pair in found.items()} == {"bk": expected, "opacus": Verdict.SAME}
    assert [rounds_taken(p.new, AGAIN) for p in found.values()] == [ROUNDS, 0]
    assert [rounds_taken(p.base, AGAIN) for p in found.values()] == [ROUNDS, 0]


def test_a_difference_that_does_not_come_again_is_inconclusive(tmp_path):
    stage = Stage(factors={("new", "bk"): 1.2})

    def recovers():
        stage.factors.clear()

    # The first child of the confirmation, once all rounds were taken.
    starts = iter(range(1000))
    stage.trouble["base", "turns", "bk", 0] = lambda: recovers() if next(starts) == ROUNDS else None
    found, _ = measured(stage, tmp_path, names=("bk",))
    assert verdict(found["bk"]) is Verdict.INCONCLUSIVE


def test_a_base_that_is_not_itself_shows_nothing(tmp_path):
    found, _ = measured(Stage(factors={("new", "bk"): 1.3, ("control", "bk"): 1.3}), tmp_path, names=("bk",))
    assert verdict(found["bk"]) is Verdict.INCONCLUSIVE
    assert rounds_taken(found["bk"].new, AGAIN) == 0


@pytest.mark.parametrize("seat", SEATS)
@pytest.mark.parametrize("turn", [0, 2])
@pytest.mark.parametrize(
    ("trouble", "outcome"),
    [
        ("dies", Outcome.FAILED),
        ("hangs", Outcome.TIMED_OUT),
        ("refused", Outcome.REFUSED),
        ("out of memory", Outcome.OUT_OF_MEMORY),
    ],
)
def test_who_does_not_get_through_says_so_on_its_side_alone_and_the_others_go_on(
    tmp_path, seat, turn, trouble, outcome
):
    stage = Stage(trouble={(seat, "turns", "bk", turn): trouble})
    found, _ = measured(stage, tmp_path)
    bad, well = (found["bk"].new, found["bk"].base) if seat == "new" else (found["bk"].base, found["bk"].new)
    assert (bad.outcome, well.outcome) == (outcome, Outcome.OK)
    assert bad.reason
    assert rounds_taken(bad) == rounds_taken(well) == 0
    if outcome is Outcome.REFUSED:
        assert (bad.coverage.trained, well.coverage.trained) == (0, 9)
    other = found["opacus"]
    assert [r.outcome for r in (other.base, other.new)] == [Outcome.OK, Outcome.OK]
    assert rounds_taken(other.new) == ROUNDS
    assert not stage.alive()


@pytest.mark.parametrize("seat", SEATS)
def test_what_fits_alone_and_not_beside_the_others_is_nobodys_fault(tmp_path, seat):
    stage = Stage(trouble={(seat, "turns", "bk", 0): "out of memory"})
    found, _ = measured(stage, tmp_path, measure=("memory", "seconds"))
    pair = found["bk"]
    assert [r.outcome for r in (pair.base, pair.new)] == [Outcome.OK, Outcome.OK]
    change = of_one_run(pair.new.cell, pair.base, pair.new)
    assert change.verdict is Verdict.NOT_COMPARABLE
    assert "a smaller batch" in change.reason
    assert rounds_taken(found["opacus"].new) == ROUNDS


def test_who_ends_when_it_is_repeated_has_no_time(tmp_path):
    stage = Stage(factors={("new", "bk"): 1.3})
    starts = iter(range(1000))
    stage.trouble["new", "turns", "bk", 0] = lambda: "dies" if next(starts) == ROUNDS else None
    found, _ = measured(stage, tmp_path)
    record = found["bk"].new
    assert (record.outcome, record.metrics, record.rounds) == (Outcome.FAILED, {}, ())


@pytest.mark.parametrize("seat", ["base", "new"])
@pytest.mark.parametrize("kind", ["parity", "trace", "memory"])
@pytest.mark.parametrize("trouble", ["dies", "hangs", "refused", "out of memory"])
def test_who_fails_before_it_is_timed_is_not_timed(tmp_path, seat, kind, trouble):
    stage = Stage(trouble={(seat, kind, "bk", 0): trouble})
    found, _ = measured(stage, tmp_path, measure=("traced", "memory", "seconds"))
    pair = found["bk"]
    bad, well = (pair.new, pair.base) if seat == "new" else (pair.base, pair.new)
    assert bad.outcome is not Outcome.OK
    assert well.outcome is Outcome.OK
    assert rounds_taken(well) == 0
    assert rounds_taken(found["opacus"].new) == ROUNDS
    assert not [c for c in stage.children if c._kind == "turns" and "bk" in c._job.implementations]


def test_without_times_there_is_no_control_and_nobody_takes_turns(tmp_path):
    stage = Stage()
    found, _ = measured(stage, tmp_path, measure=("traced",))
    assert {c._kind for c in stage.children} == {"check", "sources", "parity", "trace"}
    assert all(p.new.traced and not p.new.metrics for p in found.values())


def test_the_files_of_both_sides_compare_as_what_was_said_at_once(tmp_path):
    stage = Stage(factors={("new", "bk"): 1.2})
    found, events = measured(stage, tmp_path)
    base, new = read(events[0].base), read(events[0].new)
    assert base.header.run == new.header.run != ""
    assert (base.header.environment["side"]["name"], new.header.environment["side"]["name"]) == ("before", "after")
    times = {c.cell.implementation: c for c in compare(base, new) if c.quantity == "seconds"}
    assert {name: c.verdict for name, c in times.items()} == {name: verdict(p) for name, p in found.items()}


def test_two_implementations_are_paired_by_their_workloads(tmp_path):
    cells = [(Cell("bk", WORKLOAD), Cell("opacus", WORKLOAD))]
    stage = Stage(factors={("new", "opacus"): 1.3})
    found, events = measured(stage, tmp_path, cells=cells)
    assert verdict(found["opacus"]) is Verdict.SLOWER
    assert found["opacus"].base.cell.implementation == "bk"
    (change,) = [c for c in compare(read(events[0].base), read(events[0].new)) if c.quantity == "seconds"]
    assert change.verdict is Verdict.SLOWER


def test_progress_goes_up(tmp_path):
    _, events = measured(Stage(factors={("new", "bk"): 1.2}), tmp_path, measure=("traced", "memory", "seconds"))
    done = [e.done for e in events if isinstance(e, Progress)]
    assert done == sorted(done)
    assert 0 <= done[0] <= done[-1] <= 1


def test_what_is_broken_off_leaves_nobody_and_whole_files(tmp_path):
    stage = Stage()
    suite = Suite(name="s", title="", rounds=ROUNDS, measure=("seconds",))
    cells = [(Cell("bk", WORKLOAD), Cell("bk", WORKLOAD))]
    events = ab(suite, BASE, NEW, cells, directory=tmp_path, environment={}, launchers=stage.launchers)
    opened = next(events)
    while len(stage.alive()) < 3:
        next(events)
    events.close()
    assert not stage.alive()
    assert [c.implementation for c in read(opened.new).missing] == ["bk"]


def suite_of(**axes):
    return from_options({"model": "synthetic:mlp", "batch": 4, **axes})


def test_sides_that_are_implementations_take_the_place_of_the_suites():
    base, new = Side(name="bk", implementation="bk"), Side(name="opacus", implementation="opacus")
    workload = Workload(model="synthetic:mlp", batch=4)
    assert pairs_of(suite_of(implementation=["vmap", "opacus"]), base, new) == [
        (Cell("bk", workload), Cell("opacus", workload))
    ]
    with pytest.raises(EmptySelection):
        pairs_of(suite_of(), base, new, "B=9")


@pytest.mark.parametrize(
    ("base", "new", "message"),
    [
        ("bkk", "bk", "unknown implementation 'bkk'. Did you mean bk"),
        ("bk", "bkk", "unknown implementation 'bkk'"),
        ("bk*", "bk", r"got bk\*, expected one implementation"),
        ("bk", "all", "got all, expected one implementation"),
    ],
)
def test_a_side_that_is_no_implementation_is_a_mistake(base, new, message):
    with pytest.raises(DpbenchError, match=message):
        pairs_of(suite_of(), *(Side(name=n, implementation=n) for n in (base, new)))


def test_the_largest_batch_is_not_one_batch():
    with pytest.raises(DpbenchError, match="batch is 'max', expected a number"):
        pairs_of(suite_of(batch="max"), BASE, NEW)


def test_a_workload_that_cannot_be_is_told_before_anything_is_written(tmp_path):
    cells = [(Cell("bk", w), Cell("bk", w)) for w in [Workload(model="m", batch=8, logical_batch=4)]]
    with pytest.raises(DpbenchError, match="batch is 8 and logical_batch 4"):
        measured(Stage(), tmp_path, cells=cells)
    assert not list(tmp_path.iterdir())


def test_a_round_in_which_a_clock_was_held_down_is_repeated_and_counts_for_nothing(tmp_path, monkeypatch):
    held = iter([True, False, True, *[False] * 100])

    @contextmanager
    def watching(device):
        seen = SimpleNamespace(state=State())
        yield seen
        seen.state = State(throttled=("power brake",) if next(held) else ())

    monkeypatch.setattr("dpbench.interleaved.watched", watching)
    stage = Stage()
    found, _ = measured(stage, tmp_path, names=("bk",))
    base, new = found["bk"].base, found["bk"].new
    assert len(rounds_of(stage.turns)) == ROUNDS + 2
    assert {m: rounds_taken(base, m) for m in base.metrics} == {
        SECONDS: ROUNDS,
        CONTROL: ROUNDS,
        SECONDS + THROTTLED: 2,
        CONTROL + THROTTLED: 2,
    }
    assert {m: rounds_taken(new, m) for m in new.metrics} == {SECONDS: ROUNDS, SECONDS + THROTTLED: 2}
    assert not any(r.state.throttled for r in new.rounds)
