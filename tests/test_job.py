import json

import pytest

from dpbench.errors import DpbenchError
from dpbench.job import Job, from_json
from dpbench.records import Workload


def test_a_job_comes_back_as_it_was():
    one = Workload(model="transformers:gpt2", batch=4, seq_len=64, max_norm=0.5)
    job = Job(kind="round", workload=one, implementations=("bk", "x.py"), seed=3, memory_limit=10, also=(one, one))
    assert from_json(job.to_json()) == job
    assert "\n" not in job.to_json()


def test_what_is_no_job_is_refused():
    with pytest.raises(DpbenchError, match=r"job\.workload is missing"):
        from_json('{"kind": "round"}')


def test_what_is_as_it_would_be_unsaid_is_not_said():
    said = json.loads(Job(kind="round", workload=Workload(model="m", batch=3), seed=0).to_json())
    assert said == {"kind": "round", "workload": {"model": "m", "batch": 3}}
