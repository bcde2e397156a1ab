import pytest

from dpbench.job import Job
from dpbench.outcome import Ending
from dpbench.records import Outcome, Workload
from dpbench.supervise import Ended, Finding, Patience, supervise
from dpbench.told import Garbled

M = Workload(model="m", batch=1)
JOB = Job(kind="memory", workload=M, implementations=("a", "b"))
CHECK = Job(kind="check", workload=M)
STARTED = {"event": "started", "implementation": "a"}


class FakeChild:
    def __init__(self, messages, ending=None):
        self._messages, self._ending = list(messages), ending or Ending(0)
        self.calls = []

    def receive(self, timeout):
        message = self._messages.pop(0) if self._messages else None
        if message is TimeoutError or isinstance(message, Garbled):
            raise message
        return message

    def kill(self):
        self.calls.append("kill")

    def wait(self):
        self.calls.append("wait")
        return self._ending


class FakeLauncher:
    def __init__(self, child):
        self.child, self.imports = child, None

    def start(self, job):
        return self.child

    def remember(self, imports):
        self.imports = imports


def seen(messages, ending=None, mistakes=None, job=JOB, patience=None):
    child = FakeChild(messages, ending)
    found = list(supervise(FakeLauncher(child), job, patience or Patience(60), mistakes))
    assert child.calls[-2:] == ["kill", "wait"], "whatever happens the child is ended and waited for"
    return found


def test_messages_come_as_what_they_are():
    messages = [
        {"event": "facts", "facts": {"parameters": 3}},
        STARTED,
        {"event": "result", "implementation": "a", "memory": {"peak_live": 1.0}},
        {"event": "started", "implementation": "b"},
        {"event": "ended", "implementation": "b", "outcome": "refused", "reason": "why"},
        {"event": "done"},
    ]
    assert seen(messages) == [
        {"parameters": 3},
        "a",
        Finding("a", {"memory": {"peak_live": 1.0}}),
        "b",
        Ended("b", Outcome.REFUSED, "why"),
    ]


def test_death_is_the_fault_of_whoever_was_at_work():
    assert seen([STARTED], Ending(-11)) == ["a", Ended("a", Outcome.FAILED, "its process died of SIGSEGV", died=True)]


def test_death_before_anybody_was_at_work_is_nobodys():
    (ended,) = seen([], Ending(-9, "", 1))
    assert (ended.implementation, ended.outcome) == (None, Outcome.OUT_OF_MEMORY)


def test_silence_is_a_time_out_of_whoever_was_at_work():
    found = seen([STARTED, TimeoutError])
    assert found[-1] == Ended("a", Outcome.TIMED_OUT, "took longer than 60 s (memory)")


def test_mistakes_are_collected_each_once():
    mistakes = {}
    message = {"event": "mistake", "workload": "m B=1", "reason": "unknown model"}
    assert seen([message, message, {"event": "done"}], mistakes=mistakes, job=CHECK) == []
    assert mistakes == {"unknown model": "m B=1"}


def test_the_launcher_hears_what_was_imported():
    launcher = FakeLauncher(FakeChild([{"event": "done", "imported": ["timm"]}]))
    list(supervise(launcher, CHECK, Patience(60)))
    assert launcher.imports == ["timm"]


def test_the_child_is_ended_when_nobody_listens_any_more():
    child = FakeChild([STARTED, STARTED])
    listening = supervise(FakeLauncher(child), JOB, Patience(60))
    next(listening)
    listening.close()
    assert child.calls == ["kill", "wait"]


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_each_has_its_own_time_over_all_children():
    clock = Clock()
    patience = Patience(10, clock)
    patience.turn_to("a")
    clock.now += 6
    patience.turn_to("b")
    clock.now += 1
    assert patience.left() == pytest.approx(9)
    patience.turn_to("a")
    clock.now += 3
    assert patience.left() == pytest.approx(1)


def test_building_has_the_whole_time_in_every_child():
    clock = Clock()
    patience = Patience(10, clock)
    for _ in range(3):
        patience.turn_to(None)
        clock.now += 7
        assert patience.left() == pytest.approx(3)


RESULT = {"event": "result", "implementation": "a", "memory": {"peak_live": 1.0}}


@pytest.mark.parametrize(
    "messages",
    [
        [STARTED, RESULT, RESULT],
        [STARTED, {**RESULT, "implementation": "b"}],
        [STARTED, {**RESULT, "memory": {"peak_live": -1.0}}],
        [STARTED, {"event": "done"}],
        [STARTED, RESULT, {"event": "done"}],
        [STARTED, Garbled("no JSON")],
    ],
)
def test_who_is_at_work_answers_for_what_no_worker_says(messages):
    last = seen(messages)[-1]
    assert (last.implementation, last.outcome) == ("a", Outcome.FAILED)
    assert "its process told what no worker does (" in last.reason


def test_who_never_stops_talking_has_no_more_time_than_others():
    clock = Clock()

    class Talkative(FakeChild):
        def receive(self, timeout):
            clock.now += 1
            return STARTED

    child = Talkative([])
    found = list(supervise(FakeLauncher(child), JOB, Patience(60, clock)))
    assert found[-1] == Ended("a", Outcome.TIMED_OUT, "took longer than 60 s (memory)")
    assert len(found) == 62, "a second before a is at work, and 60 of its own"
