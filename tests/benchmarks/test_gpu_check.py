"""The run of the checks: order, budget, survival, what is kept, exit codes. No GPU is needed, and none is asked."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpbench import nvml
from dpbench.forkserver import ForkServer
from dpbench.outcome import Ending
from dpbench.papers import printed_in
from dpbench.records import Cell, Metric, Outcome, Parity, Record, Workload
from tests.benchmarks import fake_checks
from tests.benchmarks.gpu_check import __main__ as command
from tests.benchmarks.gpu_check import asking, device, events, gradients, largest, paper
from tests.benchmarks.gpu_check.check import Answer, Check, Verdict, answer
from tests.benchmarks.gpu_check.checks import CHECKS
from tests.benchmarks.gpu_check.driver import Answered, driven
from tests.benchmarks.gpu_check.table import lines, summary
from tests.fake_nvml import FakeNvml, card

PASSED, DIFFERS, COULD_NOT, NOT_DONE = Verdict


class FakeChild:
    """Says what it is told to; each message takes its seconds on the clock that all share."""

    def __init__(self, clock, messages, status=0):
        self._clock, self._messages, self._status = clock, list(messages), status

    def receive(self, timeout):
        if not self._messages:
            return None
        seconds, message = self._messages.pop(0)
        self._clock.now += min(seconds, timeout)
        if seconds > timeout:
            raise TimeoutError
        return message

    def kill(self):
        pass

    def wait(self):
        return Ending(self._status, "said", 0)


class FakeLauncher:
    """Children by the name of the check, of seconds and answers; where it is a number, that is how one dies."""

    def __init__(self, **scripts):
        self.now, self.begun, self._scripts = 0.0, [], scripts

    def clock(self):
        return self.now

    def start(self, job):
        self.begun.append(job.check)
        messages, status = [], 0
        for seconds, part in self._scripts[job.check]:
            if part == "dies":
                status = -11
                break
            one = answer(part, "1", "1", True)
            said = {"part": one.part, "expected": "1", "got": "1", "verdict": "passed", "figures": {}}
            messages.append((seconds, {"event": "answer", "answer": said}))
        return FakeChild(self, messages if status else [*messages, (0.0, {"event": "done"})], status)


def check(name, *parts, limit=60.0):
    return Check(name, parts, limit, lambda say: None)


def run(launcher, *checks, budget=100.0):
    found = list(driven(launcher, checks, budget, launcher.clock))
    return [(one.check, one.answer.part, one.answer.verdict, one.seconds) for one in found]


def test_checks_are_asked_in_their_order_and_their_answers_timed():
    launcher = FakeLauncher(a=[(3.0, "one"), (4.0, "two")], b=[(5.0, "one")])
    assert run(launcher, check("b", "one"), check("a", "one", "two")) == [
        ("b", "one", PASSED, 5.0), ("a", "one", PASSED, 3.0), ("a", "two", PASSED, 4.0)
    ]  # fmt: skip


def test_what_the_budget_does_not_reach_is_named_and_not_begun():
    launcher = FakeLauncher(a=[(96.0, "one")], b=[(1.0, "one")])
    found = run(launcher, check("a", "one", limit=99.0), check("b", "one", "two"))
    assert found[1:] == [("b", "one", NOT_DONE, 0.0), ("b", "two", NOT_DONE, 0.0)]
    assert launcher.begun == ["a"]


def test_a_check_has_its_limit_and_no_more_than_is_left():
    launcher = FakeLauncher(a=[(10.0, "one"), (500.0, "two")], b=[(500.0, "one")], c=[(1.0, "one")])
    found = run(launcher, check("a", "one", "two", limit=60.0), check("b", "one"), check("c", "one"))
    assert found == [
        ("a", "one", PASSED, 10.0), ("a", "two", NOT_DONE, 50.0), ("b", "one", NOT_DONE, 40.0),
        ("c", "one", NOT_DONE, 0.0),
    ]  # fmt: skip
    assert launcher.now == 100.0


def test_who_dies_or_says_too_little_could_not_and_the_next_goes_on():
    launcher = FakeLauncher(a=[(1.0, "one"), (0.0, "dies")], b=[(1.0, "one")], c=[(1.0, "one")])
    found = list(driven(launcher, [check(n, "one", "two") for n in "ab"] + [check("c", "one")], 100.0, launcher.clock))
    assert [one.answer.verdict for one in found] == [PASSED, COULD_NOT, PASSED, COULD_NOT, PASSED]
    assert "SIGSEGV" in found[1].answer.got
    assert "said nothing of it" in found[3].answer.got


@pytest.fixture(scope="module")
def real():
    """All fake checks in processes of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        with ForkServer(work="tests.benchmarks.fake_checks:work") as server:
            yield server


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone forks")
def test_a_run_survives_what_its_checks_do_and_keeps_all_answers(real, tmp_path, capsys):
    path = tmp_path / "deep" / "file.jsonl"
    assert command.checked(real, fake_checks.CHECKS, 120.0, path) == 1
    header, *answers, end = [json.loads(line) for line in path.read_text().splitlines()]
    assert header["checks"]["crashing"] == ["one", "two"]
    assert {"machine", "versions", "flags"} <= header["environment"].keys()
    assert [(a["check"], a["part"], a["verdict"]) for a in answers] == [
        ("right", "one", "passed"),
        ("crashing", "one", "passed"),
        ("crashing", "two", "could not"),
        ("raising", "one", "could not"),
        ("hanging", "one", "passed"),
        ("hanging", "two", "not done"),
        ("wrong", "one", "differs"),
    ]
    assert answers[0]["figures"] == {"figure": 1}
    assert "illegal memory access" in answers[3]["got"]
    assert end["summary"] == "3 passed, 1 differs, 2 could not, 1 not done; differs: wrong: one"
    printed = capsys.readouterr().out
    assert "differs    wrong: one" in printed
    assert "expected: 1" in printed
    assert printed.splitlines()[-1] == str(path)


@pytest.mark.parametrize(("checks", "code"), [([fake_checks.RIGHT], 0), ([fake_checks.RAISING], 0)])
def test_only_what_differs_fails(real, tmp_path, checks, code):
    assert command.checked(real, checks, 60.0, tmp_path / "f.jsonl") == code


def test_each_answer_is_on_the_disk_before_the_next_is_waited_for(monkeypatch, tmp_path, capsys):
    path = tmp_path / "f.jsonl"

    def cut_off(launcher, checks, budget_s):
        yield Answered("a", answer("one", "1", "1", True), 0.5)
        assert len(path.read_text().splitlines()) == 2
        assert "a: one" in capsys.readouterr().out
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "driven", cut_off)
    with pytest.raises(KeyboardInterrupt):
        command.checked(None, [], 1.0, path)
    kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
    assert kinds == ["header", "answer"]


def test_an_older_file_is_not_written_over(tmp_path):
    (tmp_path / "f.jsonl").write_text("mine")
    with pytest.raises(FileExistsError):
        command.checked(None, [], 1.0, tmp_path / "f.jsonl")
    assert (tmp_path / "f.jsonl").read_text() == "mine"


def test_without_a_device_nothing_is_written_nor_claimed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main([], missing=lambda: "torch sees no CUDA device") == 0
    said = "gpu-check: torch sees no CUDA device: nothing was checked, and nothing is claimed\n"
    assert capsys.readouterr().out == said
    assert not list(tmp_path.iterdir())


def test_a_mistake_in_the_options_is_2():
    for wrong in (["--check", "no such"], ["--budget", "long"]):
        with pytest.raises(SystemExit) as error:
            command.main(wrong, missing=lambda: "")
        assert error.value.code == 2


def test_checks_and_their_parts_have_names_of_their_own():
    assert Counter(c.name for c in CHECKS).most_common(1)[0][1] == 1
    for one in CHECKS:
        assert len(one.parts) == len(set(one.parts)) > 0
    assert [c.name for c in CHECKS[:3]] == ["device", "loop", "gradients"]


def test_a_line_says_what_was_got_and_what_was_expected_where_that_is_another():
    wrong = Answered("a", answer("one", "1", "2", False), 1.25)
    assert lines(wrong) == ["differs    a: one  (1.2 s)", "           2", "           expected: 1"]
    assert len(lines(Answered("a", answer("one", "1", "1", True), 0.0))) == 2
    assert summary([wrong]) == "1 differs; differs: a: one"


# What the checks make of figures.


def test_whoever_a_child_did_not_come_to_is_asked_in_another():
    def child(names, broken):
        started = [{"event": "started", "implementation": names[0]}]
        if broken:
            outcome = {"event": "ended", "implementation": names[0], "outcome": "failed", "reason": "CUDA error"}
            return FakeChild(clock, [(0.0, m) for m in [*started, outcome, {"event": "done"}]])
        told = []
        for name in names:
            told.append({"event": "started", "implementation": name})
            told.append({"event": "result", "implementation": name, "memory": {"peak_live": 5.0}})
        return FakeChild(clock, [(0.0, m) for m in [*told, {"event": "done"}]])

    clock, asked = SimpleNamespace(now=0.0), []

    def start(job):
        asked.append(job.implementations)
        return child(job.implementations, broken=len(asked) == 1)

    job = asking.Job(kind="memory", workload=Workload(model="m", batch=1), implementations=("a", "b", "c"))
    found, ended = asking.figures(SimpleNamespace(start=start), job)
    assert asked == [("a", "b", "c"), ("b", "c")]
    assert set(found) == {"b", "c"}
    assert ended == {"a": "failed: CUDA error"}


def test_a_child_that_says_nothing_is_not_asked_for_ever():
    job = asking.Job(kind="memory", workload=Workload(model="m", batch=1), implementations=("a", "b"))
    silent = SimpleNamespace(start=lambda job: FakeChild(SimpleNamespace(now=0.0), [(0.0, {"event": "done"})]))
    found, ended = asking.figures(silent, job)
    assert (found, set(ended)) == ({}, {"a", "b"})


def parity(error, passed=True):
    return {"parity": Parity(passed, error, 1e-8, "float64", "w")}


def test_gradients_are_right_if_all_are():
    fine = gradients.judged("p", {"a": parity(1e-15), "b": parity(2e-15)}, {})
    assert (fine.verdict, fine.got) == (PASSED, "2 right, at most 2.0e-15 (b) of 1.0e-08 allowed")
    wrong = gradients.judged("p", {"a": parity(1e-15), "b": parity(float("inf"), False)}, {"c": "refused: no"})
    assert wrong.verdict is DIFFERS
    assert "1 right" in wrong.got
    assert "b: wrong in w by inf; c: refused: no" in wrong.got
    assert gradients.judged("p", {}, {"a": "failed: no", "b": "failed: no"}).got == "a, b: failed: no"


def test_events_may_lack_what_the_wall_clock_waits_for_and_not_exceed_it():
    assert events.compared("p", [0.95, 0.96, 0.97], [1.0]).verdict is PASSED
    assert events.compared("p", [0.5], [1.0]).verdict is DIFFERS
    assert events.compared("p", [1.1], [1.0]).verdict is DIFFERS


def test_what_nvml_does_not_tell_is_named():
    whole = {"MemoryInfo": SimpleNamespace(total=24 * 2**30, used=0)}
    library = FakeNvml(card(**whole))
    (handle,) = nvml.handles(library)
    fine = device.fields(library, handle)
    assert (fine.verdict, fine.figures["mhz"], fine.figures["reasons"]) == (PASSED, 1500, 0)
    library = FakeNvml({k: v for k, v in card(**whole).items() if k != "CurrentClocksEventReasons"})
    lacking = device.fields(library, nvml.handles(library)[0])
    assert lacking.verdict is DIFFERS
    assert lacking.got.endswith("; lacking reasons")


def test_a_context_takes_what_was_not_used_before_and_is_not_torchs(monkeypatch):
    monkeypatch.setattr(device.torch.cuda, "memory_reserved", lambda where: 2**21)
    before = SimpleNamespace(used=2**30)
    assert device.taken(before, SimpleNamespace(used=2**30 + 2**29 + 2**21)).verdict is PASSED
    assert device.taken(before, SimpleNamespace(used=2**30 + 2**29 + 2**22)).verdict is DIFFERS
    assert device.taken(None, before).verdict is COULD_NOT


@pytest.mark.parametrize(
    ("found", "outcome", "verdict"),
    [(80, Outcome.OK, PASSED), (70, Outcome.OK, PASSED), (69, Outcome.OK, DIFFERS), (81, Outcome.OK, DIFFERS),
     (80, Outcome.FAILED, DIFFERS), (None, Outcome.OUT_OF_MEMORY, DIFFERS)],
)  # fmt: skip
def test_the_largest_batch_lies_within_an_eighth_of_the_traced(found, outcome, verdict):
    answers: list[Answer] = []
    record = Record(cell=Cell("bk", Workload(model="m", batch="max")), outcome=outcome, largest=found)
    largest.found(answers.append, record, 80, 8 * 10**9)
    assert answers[0].verdict is verdict


def told(name, seconds, outcome=Outcome.OK):
    workload = Workload(model="transformers:gpt2", batch=100, seq_len=100)
    metrics = {"step_seconds": Metric("s", ((seconds,),), ((0.0,),))} if outcome is Outcome.OK else {}
    return Record(cell=Cell(name, workload), outcome=outcome, metrics=metrics)


def test_the_papers_ratios_stand_beside_ours_and_only_what_ran_there_has_to_run():
    records = [
        told("nonprivate", 0.25), told("bk", 0.3125), told("ghostclip", 0.5),
        told("opacus", 0, Outcome.OUT_OF_MEMORY),
    ]  # fmt: skip
    cells = [r.cell for r in records]
    fine = paper.judged("transformers:gpt2", cells, records)
    assert fine.verdict is PASSED
    theirs = printed_in("bu2023", "gpt2-e2e").row[0].throughput
    assert fine.got.startswith(
        f"nonprivate 400/s ({theirs['nonprivate']:g}), bk 320/s 0.80 (0.80), ghostclip 200/s 0.50"
    )
    assert "opacus out of memory  (oom)" in fine.got
    records[1] = told("bk", 0, Outcome.OUT_OF_MEMORY)
    assert paper.judged("transformers:gpt2", cells, records).verdict is DIFFERS
    assert paper.judged("transformers:gpt2", cells, records[:3]).verdict is DIFFERS
    assert paper.judged("transformers:gpt2", cells, []).verdict is COULD_NOT
