"""The order of a run, with children that only say what they are told to: nothing is timed or forked here."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dpbench.coverage import Coverage
from dpbench.job import Job
from dpbench.outcome import Ending
from dpbench.paritycache import ParityCache
from dpbench.records import Cell, Outcome, Record, Workload
from dpbench.runner import Progress, Runner
from dpbench.state import State
from dpbench.timed import REPEATS, SECONDS, THROTTLED

W8 = Workload(model="m", batch=8)
W16 = Workload(model="m", batch=16)
PASSED = {"passed": True, "error": 1e-15, "tolerance": 1e-8, "precision": "float64", "worst": "norms"}
TIMED = {"seconds": [0.5, 0.25], "at": [0.0, 0.5], "started": 1e9, "warm_up": 4, "settled": True}
COVERED = {"asked": 9, "trained": 9, "frozen": {}, "norms": {"ghost": 8, "vector": 1}}


def started(name):
    return {"event": "started", "implementation": name}


def ended(name, outcome, reason="why"):
    return {"event": "ended", "implementation": name, "outcome": outcome, "reason": reason}


class FakeChild:
    def __init__(self, messages, status):
        self._messages, self._status = list(messages), status

    def receive(self, timeout):
        if not self._messages:
            return None
        message = self._messages.pop(0)
        if message is TimeoutError:
            raise TimeoutError
        return message

    def tell(self, word):
        pass

    def kill(self):
        pass

    def wait(self):
        return Ending(self._status, "said", 0)


class FakeLauncher:
    """Every child does well, but for what ``trouble`` says of a kind of job and an implementation."""

    def __init__(self, trouble=None, parity=None, fit=None):
        self.jobs: list[Job] = []
        self._fit = fit
        self._trouble, self._parity = trouble or {}, parity or {}

    def start(self, job):
        self.jobs.append(job)
        messages = [{"event": "facts", "facts": {"parameters": 7, "trainable": 9}}]
        for name in job.implementations:
            messages.append(started(name))
            trouble = self._trouble.get((job.kind, name, job.native), self._trouble.get((job.kind, name)))
            if callable(trouble):
                trouble = trouble(job)
            if trouble == "dies":
                return FakeChild(messages, -11)
            if trouble == "hangs":
                return FakeChild([*messages, TimeoutError], 0)
            if trouble is not None:
                messages.append(ended(name, "failed" if trouble == "breaks" else trouble))
                if job.kind == "round" or trouble == "breaks":
                    break
                continue
            messages.append({"event": "result", "implementation": name, **self._figures(job, name)})
        return FakeChild([*messages, {"event": "done"}], 0)

    def _figures(self, job, name):
        if job.kind == "fit":
            return {"batch": self._fit[name], "need": 7000, "capacity": 5000}
        if job.kind == "parity":
            return {"parity": {**PASSED, **self._parity.get(name, {})}, "coverage": COVERED}
        if job.kind == "trace":
            return {"traced": {"flops": 9, "bytes": 8, "peak": 7, "modules": {"1": 5}}}
        return {"memory": {"peak_live": 5.0}} if job.kind == "memory" else TIMED

    def kinds(self):
        return [(job.kind, job.implementations) for job in self.jobs]


def run(launcher, names=("a", "b", "c"), workloads=(W8,), **options):
    runner = Runner(launcher=launcher, rounds=2, **options)
    events = list(runner.run([Cell(n, w) for w in workloads for n in names]))
    return {r.cell: r for r in events if isinstance(r, Record)}, events


def test_each_workload_is_checked_then_weighed_one_by_one_then_timed_together():
    launcher = FakeLauncher()
    records, _ = run(launcher, sources={"a": "abc"}, command="dpbench run")
    all_ = ("a", "b", "c")
    assert launcher.kinds() == [("parity", all_), *(("memory", (n,)) for n in all_), ("round", all_), ("round", all_)]
    assert len({job.seed for job in launcher.jobs if job.kind == "round"}) == 2
    record = records[Cell("a", W8)]
    assert (record.outcome, record.source, record.command) == (Outcome.OK, "abc", "dpbench run")
    assert record.metrics["step_seconds"].samples == ((0.5, 0.25), (0.5, 0.25))
    assert record.metrics["peak_live"].samples == ((5.0,),)
    assert record.facts == {"parameters": 7, "trainable": 9}
    assert record.coverage == Coverage(**COVERED)


@pytest.mark.parametrize("kind", ["parity", "memory", "round"])
def test_who_refused_trained_nothing_of_what_was_asked(kind):
    records, _ = run(FakeLauncher({(kind, "b"): "refused"}))
    assert records[Cell("b", W8)].coverage == Coverage(asked=9, trained=0)


@pytest.mark.parametrize("kind", ["parity", "memory", "round"])
@pytest.mark.parametrize(
    ("trouble", "outcome"),
    [("dies", Outcome.FAILED), ("hangs", Outcome.TIMED_OUT), ("refused", Outcome.REFUSED), ("failed", Outcome.FAILED)],
)
def test_whoever_goes_wrong_is_recorded_and_the_others_go_on_without_it(kind, trouble, outcome):
    launcher = FakeLauncher({(kind, "b"): trouble})
    records, _ = run(launcher)
    assert records[Cell("b", W8)].outcome is outcome
    assert records[Cell("b", W8)].reason
    assert "step_seconds" not in records[Cell("b", W8)].metrics
    for name in "ac":
        assert records[Cell(name, W8)].outcome is Outcome.OK
        assert len(records[Cell(name, W8)].metrics["step_seconds"].samples) == 2
    assert launcher.jobs[-1].implementations == ("a", "c")


def test_a_wrong_gradient_is_never_timed():
    launcher = FakeLauncher(parity={"b": {"passed": False, "error": 0.125, "worst": "wte.weight"}})
    records, _ = run(launcher)
    record = records[Cell("b", W8)]
    assert record.outcome is Outcome.WRONG
    assert "wte.weight" in record.reason
    assert "0.12" in record.reason
    assert record.parity is not None
    assert record.metrics == {}
    assert all("b" not in job.implementations for job in launcher.jobs[1:])


def test_without_memory_for_float64_the_check_is_in_the_precision_of_the_workload():
    launcher = FakeLauncher({("parity", "b", False): "out of memory"})
    records, _ = run(launcher)
    assert [(job.implementations, job.native) for job in launcher.jobs[:2]] == [
        (("a", "b", "c"), False),
        (("b",), True),
    ]
    assert records[Cell("b", W8)].outcome is Outcome.OK


def test_without_memory_for_any_check_the_cell_is_out_of_memory():
    launcher = FakeLauncher({("parity", "b"): "out of memory"})
    records, _ = run(launcher)
    assert records[Cell("b", W8)].outcome is Outcome.OUT_OF_MEMORY


def test_a_model_that_cannot_be_built_ends_every_cell_of_its_workload():
    class Broken(FakeLauncher):
        def start(self, job):
            self.jobs.append(job)
            return FakeChild([ended(None, "failed", "no such layer"), {"event": "done"}], 0)

    launcher = Broken()
    records, _ = run(launcher, workloads=(W8, W16))
    assert {(r.outcome, r.reason) for r in records.values()} == {(Outcome.FAILED, "no such layer")}
    assert len(records) == 6
    assert len(launcher.jobs) == 2


@pytest.mark.parametrize(("deaths", "outcome"), [(1, Outcome.OK), (2, Outcome.FAILED)])
def test_a_process_that_dies_while_nobody_is_at_work_is_tried_once_more(deaths, outcome):
    class Unlucky(FakeLauncher):
        def start(self, job):
            child = super().start(job)
            return FakeChild([], -11) if len(self.jobs) <= deaths else child

    launcher = Unlucky()
    records, _ = run(launcher)
    assert {r.outcome for r in records.values()} == {outcome}
    assert [job.kind for job in launcher.jobs[:2]] == ["parity", "parity"]


@pytest.mark.parametrize("kind", ["parity", "memory", "round"])
def test_a_child_that_is_done_without_a_figure_of_each_does_not_go_on_for_ever(kind):
    class Silent(FakeLauncher):
        def start(self, job):
            child = super().start(job)
            return FakeChild([started(job.implementations[0]), {"event": "done"}], 0) if job.kind == kind else child

    records, _ = run(Silent())
    assert {r.outcome for r in records.values()} == {Outcome.FAILED}
    assert all("without a result of each" in r.reason for r in records.values())


def test_a_gradient_is_checked_once_for_all_batch_sizes():
    launcher = FakeLauncher()
    records, _ = run(launcher, workloads=(W8, W16))
    assert [job.workload for job in launcher.jobs if job.kind == "parity"] == [W8]
    assert records[Cell("a", W16)].parity == records[Cell("a", W8)].parity


def test_a_wrong_gradient_is_wrong_at_every_batch_size():
    launcher = FakeLauncher(parity={"b": {"passed": False}})
    records, _ = run(launcher, workloads=(W8, W16))
    assert records[Cell("b", W16)].outcome is Outcome.WRONG


def test_rechecking_checks_in_every_cell():
    launcher = FakeLauncher()
    run(launcher, workloads=(W8, W16), checked=ParityCache({}, recheck=True))
    assert [job.workload for job in launcher.jobs if job.kind == "parity"] == [W8, W16]


def test_no_child_is_started_for_a_workload_of_which_nobody_is_left():
    launcher = FakeLauncher({("parity", "a"): "refused"})
    run(launcher, names=("a",))
    assert [job.kind for job in launcher.jobs] == ["parity"]


def test_progress_goes_up_and_names_who_is_at_work():
    _, events = run(FakeLauncher({("memory", "b"): "dies"}), workloads=(W8, W16))
    progress = [e for e in events if isinstance(e, Progress)]
    done = [p.done for p in progress]
    assert done == sorted(done)
    assert done[0] == 0
    assert 0.5 < done[-1] < 1
    assert {p.implementation for p in progress} == {None, "a", "b", "c"}
    assert [p.phase for p in progress][-1] == "round 2 of 2"


def test_every_cell_gets_exactly_one_record():
    trouble = {("parity", "a"): "dies", ("memory", "b"): "refused", ("round", "c"): "hangs"}
    _, events = run(FakeLauncher(trouble), names=("a", "b", "c", "d"), workloads=(W8, W16))
    cells = [e.cell for e in events if isinstance(e, Record)]
    assert sorted(cells, key=str) == sorted({Cell(n, w) for n in "abcd" for w in (W8, W16)}, key=str)


def test_who_was_not_looked_at_any_more_is_looked_at_in_another_child():
    """As after an implementation that broke the device."""
    launcher = FakeLauncher({("parity", "a"): "breaks"})
    records, _ = run(launcher)
    assert launcher.kinds()[:2] == [("parity", ("a", "b", "c")), ("parity", ("b", "c"))]
    assert {c.implementation: r.outcome for c, r in records.items()} == {"a": "failed", "b": "ok", "c": "ok"}


MOST = Workload(model="m", batch="max")
EACH = {"a": 40, "b": 30, "c": 8}


def test_each_runs_at_its_own_largest_batch_alone_in_its_child_and_the_cell_stays_what_was_asked():
    launcher = FakeLauncher(fit=EACH)
    records, _ = run(launcher, workloads=(MOST,), capacity=5000)
    all_, alone = ("a", "b", "c"), [("a",), ("b",), ("c",)]
    assert launcher.kinds() == [
        ("fit", all_), ("parity", all_), *(("memory", n) for n in alone), *(("round", n) for n in alone * 2)
    ]  # fmt: skip
    assert launcher.jobs[0].capacity == 5000
    assert {job.capacity for job in launcher.jobs if job.kind == "memory"} == {5000}
    for job in launcher.jobs[2:]:
        assert job.workload == replace(MOST, batch=EACH[job.implementations[0]])
    assert {cell.implementation: r.largest for cell, r in records.items()} == EACH
    assert all(cell.workload == MOST and r.outcome is Outcome.OK for cell, r in records.items())


def test_without_room_for_one_example_nothing_is_run():
    launcher = FakeLauncher(fit={**EACH, "b": 0})
    records, _ = run(launcher, workloads=(MOST,))
    record = records[Cell("b", MOST)]
    assert (record.outcome, record.largest) == (Outcome.OUT_OF_MEMORY, None)
    assert record.reason == "one example needs 7.00 kB, and there are 5.00 kB (traced)"
    assert all("b" not in job.implementations for job in launcher.jobs[1:])


@pytest.mark.parametrize(
    ("trouble", "outcome"),
    [("dies", Outcome.FAILED), ("hangs", Outcome.TIMED_OUT), ("refused", Outcome.REFUSED), ("failed", Outcome.FAILED)],
)
def test_whoever_cannot_be_traced_is_recorded_and_the_others_go_on(trouble, outcome):
    records, _ = run(FakeLauncher({("fit", "b"): trouble}, fit=EACH), workloads=(MOST,))
    assert {c.implementation: r.outcome for c, r in records.items()} == {"a": "ok", "b": outcome, "c": "ok"}
    assert records[Cell("b", MOST)].largest is None


def test_a_batch_that_fits_by_tracing_alone_is_made_smaller_until_the_step_does():
    launcher = FakeLauncher(
        {("memory", "b"): lambda job: "out of memory" if job.workload.batch > 20 else None}, fit=EACH
    )
    records, _ = run(launcher, workloads=(MOST,))
    tried = [job.workload.batch for job in launcher.jobs if job.kind == "memory" and job.implementations == ("b",)]
    assert tried == [30, 27, 24, 21, 19]
    record = records[Cell("b", MOST)]
    assert (record.outcome, record.largest) == (Outcome.OK, 19)
    assert [job.workload.batch for job in launcher.jobs if job.kind == "round"][1] == 19


def test_a_batch_that_was_given_stays_what_it_is():
    launcher = FakeLauncher({("memory", "b"): "out of memory"})
    records, _ = run(launcher)
    assert records[Cell("b", W8)].outcome is Outcome.OUT_OF_MEMORY
    weighed = [job for job in launcher.jobs if job.kind == "memory"]
    assert [job.implementations for job in weighed] == [("a",), ("b",), ("c",)]
    assert {job.capacity for job in weighed} == {None}


@pytest.mark.parametrize(
    ("measure", "kinds"),
    [
        (["traced"], ["parity", "trace"]),
        (["memory"], ["parity", "memory"]),
        (["seconds"], ["parity", "round", "round"]),
        (["traced", "memory", "seconds"], ["parity", "trace", "memory", "round", "round"]),
    ],
)
def test_only_what_is_asked_for_is_measured_and_the_gradient_always_checked(measure, kinds):
    launcher = FakeLauncher()
    records, events = run(launcher, names=("a",), measure=measure)
    assert [kind for kind, _ in launcher.kinds()] == kinds
    record = records[Cell("a", W8)]
    assert record.outcome is Outcome.OK
    assert (record.traced is not None) == ("traced" in measure)
    assert ("peak_live" in record.metrics) == ("memory" in measure)
    assert len(record.rounds) == (2 if "seconds" in measure else 0)
    assert max(e.done for e in events if isinstance(e, Progress)) <= 1


def test_every_sample_has_its_time_and_every_round_its_warm_up():
    records, _ = run(FakeLauncher(), names=("a",))
    record = records[Cell("a", W8)]
    assert record.metrics["step_seconds"].at == ((0.0, 0.5), (0.0, 0.5))
    assert [(r.started, r.warm_up, r.settled) for r in record.rounds] == [(1e9, 4, True)] * 2


class Clocks:
    """The state of the machine round by round: whether a clock was held down."""

    def __init__(self, held):
        self._held = iter(held)

    @contextmanager
    def __call__(self, device):
        seen = SimpleNamespace(state=State())
        yield seen
        seen.state = State(throttled=("power brake",) if next(self._held) else ())


@pytest.mark.parametrize(
    ("held", "taken", "aside", "marked"),
    [
        ([False, False], 2, 0, 0),
        ([True, False, False], 2, 1, 0),
        ([True, True, False, True, False], 2, 3, 0),
        # Where it goes on, rounds count at last, and say so.
        ([True] * 5, 2, REPEATS, 2),
    ],
)
def test_a_round_in_which_a_clock_was_held_down_is_repeated_up_to_a_limit(monkeypatch, held, taken, aside, marked):
    monkeypatch.setattr("dpbench.runner.watched", Clocks(held))
    launcher = FakeLauncher()
    records, _ = run(launcher, measure=["seconds"])
    assert len([job for job in launcher.jobs if job.kind == "round"]) == len(held)
    for record in records.values():
        assert len(record.metrics[SECONDS].samples) == len(record.rounds) == taken
        assert len(record.metrics[SECONDS + THROTTLED].samples if aside else ()) == aside
        assert sum(bool(r.state.throttled) for r in record.rounds) == marked


LAYERS = [["w", 1, 2, 3]]


class Layered(FakeLauncher):
    """Traces tell of the model's layers."""

    def start(self, job):
        child = super().start(job)
        if job.kind == "trace":
            child._messages[0]["facts"]["layers"] = [list(row) for row in LAYERS]
        return child


@pytest.mark.parametrize(
    ("trouble", "who"),
    [
        ({}, "a"),
        ({("trace", "b"): "refused"}, "a"),
        ({("trace", "a"): "dies"}, "a"),
        ({("round", "a"): "dies"}, "a"),
        ({("parity", "a"): "refused"}, "b"),
    ],
)
@pytest.mark.parametrize("workload", [W8, MOST], ids=["B=8", "max"])
def test_one_record_of_a_workload_has_the_layers_of_its_model(trouble, who, workload):
    launcher = Layered(trouble, fit={"a": 9, "b": 8, "c": 7})
    records, _ = run(launcher, workloads=(workload, replace(workload, seq_len=5)), measure=("traced", "seconds"))
    for seq_len in (None, 5):
        of = {c.implementation: r.facts.get("layers") for c, r in records.items() if c.workload.seq_len == seq_len}
        assert of == {name: LAYERS if name == who else None for name in "abc"}


def test_without_traces_there_are_none():
    records, _ = run(Layered(), measure=("memory",))
    assert all("layers" not in record.facts for record in records.values())
