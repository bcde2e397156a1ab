"""The verdict on one implementation and one case: every call in float64 against the loop over the examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from typing import TypeVar

import torch

from dpbench.batch import size
from dpbench.cases import Case
from dpbench.clipping import Clip
from dpbench.conformance.comparing import Far, nearest, not_finite
from dpbench.conformance.subject import Subject, truths
from dpbench.conformance.trial import Trial, largest_move, tried
from dpbench.conformance.verdict import BESIDE, Native, Ruling, Verdict
from dpbench.errors import DpbenchError
from dpbench.interface import Output
from dpbench.parity import TIMES_LOOP, TOLERANCE, UNCLIPPED
from dpbench.precision import EPSILONS
from dpbench.preparation import settled
from dpbench.registry import load

_EXACT = torch.finfo(torch.float64).eps


def judge(case: Case, name: str) -> Verdict:
    """What becomes of implementation ``name`` on a case of the kit."""
    subject = Subject(case.build)
    if case.refused:
        return _refused(attempted(name, case.name, lambda: _refusal(case, name, subject)))
    return judged(subject, case.name, name)


def judged(subject: Subject, check: str, name: str) -> Verdict:
    """The calls of a problem, in float64 and then in other precisions.

    A problem that autocasts is judged as it is, and allowed ten times the error of the loop itself.
    """
    problem = subject.problem()
    clip = clip_for(subject, name)
    answers = truths(subject.exact(), clip)
    by_hand = problem.norms
    if by_hand is not None:
        _agree(answers[0][0], by_hand, check)
    epsilon, precision = (EPSILONS["amp-bf16"], "autocast") if problem.native else (_EXACT, "float64")
    # The casts are left out of the forward alone, and an implementation may compute parts of it again.
    tolerance = max(TOLERANCE, problem.rounding)
    if problem.native:
        own = [answer[0] for answer in truths(subject.problem(), clip)]
        tolerance = TIMES_LOOP * max(nearest(own, answers, epsilon)[0], epsilon)

    trial = attempted(
        name,
        check,
        lambda: tried(name, subject.problem() if problem.native else subject.exact(), clip, not_finite(answers)),
    )
    if isinstance(trial, Verdict):
        return trial
    found = _verdict(name, check, subject, trial, answers, clip, (tolerance, epsilon, precision))
    trains = found.ruling is Ruling.RIGHT or (found.ruling is Ruling.FREEZES and len(found.frozen) < found.asked)
    if trains and not (problem.native or problem.random):
        found.native.update({p: beside(name, subject, p, clip, found.frozen) for p in BESIDE})
    return found


T = TypeVar("T")

_MISTAKES = (AttributeError, IndexError, KeyError, TypeError, AssertionError)
"""What nobody raises to say that something is not supported, whoever passes it on."""


def attempted(name: str, check: str, attempt: Callable[[], T]) -> T | Verdict:
    """What an implementation gives, or the verdict on what it raised."""
    try:
        return attempt()
    except NotImplementedError as refusal:
        return Verdict(implementation=name, check=check, ruling=Ruling.REFUSES, message=" ".join(str(refusal).split()))
    except DpbenchError as refusal:
        text = " ".join(str(refusal).split())
        ruling = Ruling.CRASHES if isinstance(refusal.__cause__, _MISTAKES) else Ruling.REFUSES
        return Verdict(implementation=name, check=check, ruling=ruling, message=text)
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Verdict(implementation=name, check=check, ruling=Ruling.CRASHES, message=text)


def clip_for(subject: Subject, name: str) -> Clip:
    """R of the problem, with the stability constant that the implementation says it has."""
    return settled(name, subject.clip())


def _refused(verdict: Verdict) -> Verdict:
    """Where there is no right answer, a refusal is."""
    if verdict.ruling is not Ruling.REFUSES:
        return verdict
    return replace(verdict, ruling=Ruling.RIGHT, message=f"refuses: {verdict.message}")


def _refusal(case: Case, name: str, subject: Subject) -> Verdict:
    """Where a gradient is given all the same, it has to be that of each example on its own, whoever is beside it.

    What is not private needs no gradient of one example.
    """
    try:
        clip = clip_for(subject, name)
    except Exception:
        # The loop cannot compute it, either.
        clip = settled(name, Clip())
    trial = tried(name, subject.exact(), clip)
    if not load(name).PRIVATE:
        message = "not private, so that no example needs a gradient of its own"
        return Verdict(implementation=name, check=case.name, ruling=Ruling.RIGHT, message=message)
    try:
        alone = nearest(trial.outputs, truths(subject.exact(), clip), _EXACT)
    except Exception:
        alone = float("inf"), ""
    if trial.clips and alone[0] <= TOLERANCE:
        message = "takes each example on its own, so that none is mixed with another"
        return Verdict(implementation=name, check=case.name, ruling=Ruling.RIGHT, error=alone[0], message=message)
    message = f"it gives a gradient where no example has one of its own: {case.refused}"
    return Verdict(implementation=name, check=case.name, ruling=Ruling.WRONG, message=message)


def _verdict(
    name: str,
    check: str,
    subject: Subject,
    trial: Trial,
    answers: Sequence[Sequence[Output]],
    clip: Clip,
    scale: tuple[float, float, str],
) -> Verdict:
    tolerance, epsilon, precision = scale
    error, worst = _error(name, subject, trial, answers, clip, epsilon)
    right = isfinite(error) and error <= tolerance and not trial.astray
    if trial.astray and error <= tolerance:
        error, worst = float("inf"), trial.astray
    return Verdict(
        implementation=name,
        check=check,
        ruling=Ruling.WRONG if not right else Ruling.FREEZES if trial.frozen else Ruling.RIGHT,
        error=error,
        worst=worst,
        frozen=trial.frozen,
        asked=len(trial.asked),
        figure="" if right else _move(name, subject, clip),
        tolerance=tolerance,
        precision=precision,
    )


def _error(
    name: str, subject: Subject, trial: Trial, answers: Sequence[Sequence[Output]], clip: Clip, epsilon: float
) -> Far:
    """Of each call, against the loop over what was trained in it; of who clips nothing, against the plain sum."""
    if len(trial.frozen) == len(trial.asked):
        return 0.0, ""
    if not trial.clips:
        if load(name).PRIVATE:
            return float("inf"), "norms (it gave none)"
        clip, answers = UNCLIPPED, truths(subject.exact(), UNCLIPPED)
    outputs, right = [], []
    for i, out in enumerate(trial.outputs):
        missing = [] if out is None else [n for n in trial.asked if n not in out.grads]
        # Where nothing at all was trained there is nothing to compare.
        outputs.append(None if len(missing) == len(trial.asked) else out)
        right.append(truths(subject.exact(), clip, missing, call=i)[0] if missing and outputs[-1] else answers[i])
    return nearest(outputs, right, epsilon)


def _move(name: str, subject: Subject, clip: Clip) -> str:
    """Whether what is wrong exceeds the sensitivity that noise is scaled to, too, in the first call."""
    problem = subject.exact()
    call = problem.calls[0]
    if not load(name).PRIVATE or call.unit is not None or call.mask is not None or not size(call.batch):
        return ""
    try:
        return f"an example moves the sum by {largest_move(name, problem, clip, call.batch):.3f} R"
    except Exception:
        return ""


def beside(name: str, subject: Subject, precision: str, clip: Clip, frozen: Sequence[str] = ()) -> Native:
    """The errors of an implementation and of the loop in ``precision``, both from the exact gradient there."""
    answers = truths(subject.exact(rounded=precision), clip, frozen)
    epsilon = EPSILONS[precision]
    try:
        own = [answer[0] for answer in truths(subject.native(precision), clip, frozen)]
        loop = nearest(own, answers, epsilon)[0]
    except Exception as error:
        return Native(None, float("nan"), epsilon, f"the loop raises {type(error).__name__}: {error}".splitlines()[0])
    try:
        trial = tried(name, subject.native(precision), clip, not_finite(answers))
    except Exception as error:
        return Native(None, loop, epsilon, " ".join(f"{type(error).__name__}: {error}".split()))
    if not trial.clips:
        answers = truths(subject.exact(rounded=precision), UNCLIPPED, frozen)
    return Native(nearest(trial.outputs, answers, epsilon)[0], loop, epsilon)


def _agree(loop: Output, by_hand: Sequence[float], check: str) -> None:
    """Raise if the oracle itself is wrong."""
    assert loop.norms is not None
    expected = torch.tensor(by_hand, dtype=loop.norms.dtype)
    if loop.norms.shape != expected.shape or not torch.allclose(loop.norms, expected, rtol=1e-12, atol=0):
        raise AssertionError(f"{check}: the loop gives norms {loop.norms.tolist()}, by hand they are {by_hand}")
