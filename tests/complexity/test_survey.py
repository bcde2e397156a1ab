"""Many traces at once: the same in processes as without, and reasons where there are none."""

from __future__ import annotations

import os
from dataclasses import replace

from dpbench.complexity.survey import Task, survey, workers
from dpbench.complexity.tracing import trace_of
from dpbench.records import Workload

MLP = Workload(model="synthetic:mlp(width=16,depth=2)", batch=1)
BATCH_NORM = Workload(model="torchvision:resnet18", batch=1, image_size=32)


def test_in_processes_as_in_this_one():
    tasks = [Task(name, MLP, (name,), 10**7) for name in ("nonprivate", "bk", "opacus", "tf_privacy")]
    alone = {found.implementation: found for found in survey(tasks)}
    with workers(2) as pool:
        assert {found.implementation: found for found in survey(tasks, pool)} == alone


def test_a_process_that_is_killed_costs_its_tasks_and_no_traceback():
    with workers(2) as pool:
        pool.submit(os._exit, 9)
        found = list(survey([Task(name, MLP, (name,), 10**7) for name in ("bk", "opacus")], pool))
    assert {f.implementation for f in found} == {"bk", "opacus"}
    assert all(f.line is None and "was killed" in f.reason for f in found)


def test_a_line_goes_through_the_traces():
    (found,) = survey([Task("bk", MLP, ("bk",), 10**5)])
    direct = trace_of("bk", replace(MLP, batch=20))
    along = found.line.at(20)
    assert (along.total, along.traffic, along.resident) == (direct.total, direct.traffic, direct.resident)
    for end in (found.line.start, found.line.end):
        there = trace_of("bk", replace(MLP, batch=end))
        assert found.line.need(end) == there.resident + there.peak
    assert 0.5 * 10**5 < found.line.need(found.line.end) < 1.5 * 10**5, "it ends about where the memory is full"
    assert found.gradient == 4 * 2 * (16 * 16 + 16)


def test_the_first_that_does_not_refuse_is_taken(tmp_path):
    path = tmp_path / "refusing.py"
    path.write_text(
        "from dpbench.errors import Refused\nfrom dpbench.interface import Supports\n"
        "TITLE, MODULES, SUPPORTS, PRIVATE = 'r', '1 2a 2b', Supports(), True\n"
        "def prepare(model, losses, clip):\n    raise Refused('not this one')\n"
    )
    (found,) = survey([Task("it", MLP, (str(path), "bk"), 10**7)])
    assert found.implementation == "bk"
    (found,) = survey([Task("it", MLP, (str(path),), 10**7)])
    assert (found.line, found.reason) == (None, "not this one")


def test_a_model_that_is_refused_is_a_reason():
    (found,) = survey([Task("bk", BATCH_NORM, ("bk",), 10**9)])
    assert found.line is None
    assert "training mode" in found.reason
