"""The order of a run: for each workload the gradients are checked, then costs counted, memory taken, rounds timed.

Where the batch is ``max``, each implementation's is found before that, and each round is a child of its own for
each of them: a step that fills the memory leaves no room for another's weights.

Everything happens in children. What raises, crashes, is killed, or takes too long is recorded as the
outcome of the implementation that was at work, and the others go on without it. No torch here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from dpbench.child import Launcher
from dpbench.coverage import Coverage
from dpbench.job import Job
from dpbench.paritycache import Checked, ParityCache
from dpbench.records import MAX, Cell, Metric, Outcome, Record, Traced, Workload
from dpbench.reporting.numbers import size
from dpbench.state import watched
from dpbench.suite import group
from dpbench.suitefile import MEASURED
from dpbench.supervise import Ended, Finding, Patience, Seen, supervise
from dpbench.timed import REPEATS, Timed

Verdict = tuple[Outcome, str]

FIT = "largest batch"
"""The phase in which it is searched for."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run is."""

    workload: Workload
    implementation: str | None
    """Who is at work; None while the model is built."""
    phase: str
    """``largest batch``, ``gradient``, ``memory`` or ``round 2 of 3``."""
    done: float
    """Part of the run that is behind, 0 to 1."""


Event = Progress | Record


@dataclass(slots=True, kw_only=True)
class Runner:
    """How cells are measured, and what is written into each record."""

    launcher: Launcher
    rounds: int = 3
    measure: Sequence[str] = MEASURED
    """What is taken of each, beside the check of its gradient."""
    budget_s: float = 1.0
    timeout_s: float = 600.0
    capacity: int | None = None
    """Bytes that a step may take where the batch is ``max``; None: what the device has."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Hash of the source of each implementation."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    checked: ParityCache = field(default_factory=lambda: ParityCache({}))
    """Gradients that need no further check."""

    def run(self, cells: Sequence[Cell]) -> Generator[Event]:
        """Measure the cells; each record as soon as it is known, and what is being done in between."""
        groups = group(cells)
        for i, (workload, members) in enumerate(groups.items()):
            names = [c.implementation for c in members]
            yield from _Group(self, workload, names, i / len(groups), 1 / len(groups)).run()


class _Group:
    """The cells of one workload on their way."""

    def __init__(self, runner: Runner, workload: Workload, names: list[str], start: float, share: float) -> None:
        self._runner, self._workload = runner, workload
        self._alive = list(names)
        self._ran = dict.fromkeys(names, workload)
        """The workload as each runs it: at its own batch."""
        self._start, self._share = start, share
        self._phases = 1 + len({"traced", "memory"} & {*runner.measure}) + runner.rounds * self._times
        self._units, self._done = len(names) * self._phases, 0
        self._patience = Patience(runner.timeout_s)
        self._parity: dict[str, Checked] = {}
        self._traced: dict[str, Traced] = {}
        self._memory: dict[str, dict[str, float]] = {}
        self._timed: dict[str, Timed] = {name: Timed() for name in names}
        self._repeats = REPEATS
        self._facts: dict[str, Any] = {}
        self._layers: list[Any] | None = None
        """Those of the model until one record has them; None: not told yet."""
        self._started = datetime.now(UTC).isoformat(timespec="seconds")

    def run(self) -> Iterator[Event]:
        """All parts."""
        if self._workload.batch == MAX:
            yield from self._fit()
        yield from self._check()
        if "traced" in self._runner.measure:
            yield from self._trace()
        if "memory" in self._runner.measure:
            for name in list(self._alive):
                yield from self._weigh(name)
                self._done += 1
        for r in range(self._runner.rounds * self._times):
            yield from self._round(r)
        for name in list(self._alive):
            yield self._finish(name, Outcome.OK, "")

    def _fit(self) -> Iterator[Event]:
        """Find the batch of each; without room for one example nothing is run."""
        left = list(self._alive)
        while left:
            capacity = self._runner.capacity
            job = Job(kind="fit", workload=self._workload, implementations=tuple(left), capacity=capacity)
            results, ended = yield from self._child(job, FIT)
            for name, found in results.items():
                self._ran[name] = replace(self._workload, batch=found["batch"])
                if not found["batch"]:
                    reason = (
                        f"one example needs {size(found['need'])}, and there are {size(found['capacity'])} (traced)"
                    )
                    ended[name] = Outcome.OUT_OF_MEMORY, reason
            yield from self._settle(ended)
            left = [n for n in left if n not in results and n not in ended]

    @property
    def _times(self) -> bool:
        return "seconds" in self._runner.measure

    def _trace(self) -> Iterator[Event]:
        """Count the costs of all in one child; begun anew without whoever ends it."""
        left = list(self._alive)
        while left:
            together = left[:1] if self._workload.batch == MAX else left
            job = Job(kind="trace", workload=self._ran[left[0]], implementations=tuple(together))
            results, ended = yield from self._child(job, "trace")
            for name, values in results.items():
                self._traced[name] = values["traced"]
            yield from self._settle(ended)
            left = [n for n in left if n not in results and n not in ended]
        self._done += self._units // self._phases

    def _weigh(self, name: str) -> Iterator[Event]:
        """Take the memory of one; a batch that was found by tracing is made smaller until the step really fits.

        A trace sees neither the buffers inside an operation nor what an allocator cannot use.
        """
        while True:
            capacity = self._runner.capacity if self._workload.batch == MAX else None
            job = Job(kind="memory", workload=self._ran[name], implementations=(name,), capacity=capacity)
            results, ended = yield from self._child(job, "memory")
            batch = job.workload.physical
            ran_out = ended.get(name, (None,))[0] is Outcome.OUT_OF_MEMORY
            if not ran_out or batch == 1 or self._workload.batch != MAX:
                break
            self._ran[name] = replace(self._workload, batch=batch - max(1, batch // 8))
        if name in results:
            self._memory[name] = results[name]["memory"]
        yield from self._settle(ended)

    def _check(self) -> Iterator[Event]:
        """Who was checked before is not checked again; who has no memory for it in float64, in his own precision."""
        left = []
        for name in list(self._alive):
            known = self._runner.checked.get(self._workload, name)
            if known is None:
                left.append(name)
            else:
                self._parity[name] = known
                yield from self._judge(name)
        for native in (False, True):
            ended: dict[str, Verdict] = {}
            while left:
                job = Job(kind="parity", workload=self._workload, implementations=tuple(left), native=native)
                results, stopped = yield from self._child(job, "gradient")
                for name, values in results.items():
                    self._parity[name] = values["parity"], values["coverage"]
                    self._runner.checked.put(self._workload, name, self._parity[name])
                    yield from self._judge(name)
                ended |= stopped
                left = [n for n in left if n not in results and n not in ended]
            if not native:
                left = [n for n, (outcome, _) in ended.items() if outcome is Outcome.OUT_OF_MEMORY]
                ended = {n: v for n, v in ended.items() if n not in left}
            yield from self._settle(ended)
        self._done = self._units // self._phases

    def _judge(self, name: str) -> Iterator[Event]:
        parity, _ = self._parity[name]
        if not parity.passed:
            reason = (
                f"{parity.worst} differs from the per-example loop's by {parity.error:.2g} "
                f"(at most {parity.tolerance:.2g}, in {parity.precision})"
            )
            yield from self._settle({name: (Outcome.WRONG, reason)})

    def _round(self, number: int) -> Iterator[Event]:
        """One round of those who are left, interleaved in one child where they have one batch."""
        apart = self._workload.batch == MAX
        for names in [[n] for n in self._alive] if apart else [list(self._alive)]:
            yield from self._time(number, names)
        self._done += self._units // self._phases

    def _time(self, number: int, names: list[str]) -> Iterator[Event]:
        """One child of a round; begun anew without whoever does not get through it, or where a clock was held down."""
        while names := [n for n in names if n in self._alive]:
            job = Job(
                kind="round",
                workload=self._ran[names[0]],
                implementations=tuple(names),
                seed=number,
                budget_s=self._runner.budget_s,
            )
            with watched(self._workload.device) as seen:
                results, ended = yield from self._child(job, f"round {number + 1} of {self._runner.rounds}")
            yield from self._settle(ended)
            if not ended:
                again = bool(seen.state.throttled) and self._repeats > 0
                for name, values in results.items():
                    self._timed[name].add(values, seen.state, repeated=again)
                if not again:
                    break
                self._repeats -= 1

    def _child(
        self, job: Job, phase: str
    ) -> Generator[Event, None, tuple[dict[str, dict[str, Any]], dict[str, Verdict]]]:
        """What one child found, and who ended otherwise; where nobody was at work yet, all of them.

        There is one or the other of each, or somebody who ended.
        """
        found: dict[str, dict[str, Any]] = {}
        ended: dict[str, Verdict] = {}
        yield self._progress(None, phase)
        for seen in self._twice(job):
            match seen:
                case str():
                    yield self._progress(seen, phase)
                case Finding(name, values):
                    found[name] = values
                case Ended(name, outcome, reason, _):
                    for who in job.implementations if name is None else (name,):
                        found.pop(who, None)
                        ended.setdefault(who, (outcome, reason))
                case dict():
                    layers = seen.pop("layers", None)
                    self._layers = layers if self._layers is None else self._layers
                    self._facts = seen
        return found, ended

    def _twice(self, job: Job) -> Iterator[Seen]:
        """What comes of a job; once more if its process died while nobody was at work, whose fault it could be."""
        for seen in supervise(self._runner.launcher, job, self._patience):
            if isinstance(seen, Ended) and seen.implementation is None and seen.died:
                yield from supervise(self._runner.launcher, job, self._patience)
                return
            yield seen

    def _settle(self, ended: Mapping[str, Verdict]) -> Iterator[Record]:
        for name, (outcome, reason) in ended.items():
            if name in self._alive:
                yield self._finish(name, outcome, reason)

    def _finish(self, name: str, outcome: Outcome, reason: str) -> Record:
        facts = self._facts
        if self._layers and name == self._alive[0]:
            facts, self._layers = {**facts, "layers": self._layers}, []
        self._alive.remove(name)
        metrics = {key: Metric("bytes", ((value,),)) for key, value in self._memory.get(name, {}).items()}
        timed = self._timed[name] if outcome is Outcome.OK and self._times else Timed()
        metrics |= timed.metrics()
        parity, coverage = self._parity.get(name, (None, None))
        if outcome is Outcome.REFUSED:
            asked = coverage.asked if coverage else self._facts.get("trainable")
            coverage = None if asked is None else Coverage(asked, trained=0)
        ran = self._ran[name].batch
        return Record(
            cell=Cell(name, self._workload),
            outcome=outcome,
            reason=reason,
            metrics=metrics,
            rounds=tuple(timed.rounds),
            traced=self._traced.get(name),
            parity=parity,
            coverage=coverage,
            largest=ran if self._workload.batch == MAX and isinstance(ran, int) and ran else None,
            facts=facts,
            environment=dict(self._runner.environment),
            source=self._runner.sources.get(name, ""),
            command=self._runner.command,
            started=self._started,
        )

    def _progress(self, name: str | None, phase: str) -> Progress:
        done = self._start + self._share * min(self._done / max(self._units, 1), 1.0)
        return Progress(self._workload, name, phase, done)
