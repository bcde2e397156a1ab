from dataclasses import replace

import pytest

from dpbench.coverage import Coverage
from dpbench.paritycache import ParityCache
from dpbench.records import Outcome, Parity
from tests.records_for_tests import COVERED, record, workload

CHECKED = (Parity(True, 1e-15, 1e-8, "float64"), COVERED)
W = workload(batch=8, seq_len=64)


def cache(**options):
    made = ParityCache({"bk": "abc"}, **options)
    made.put(W, "bk", CHECKED)
    return made


@pytest.mark.parametrize(
    "axes",
    [{"batch": 32}, {"step": "train", "optimizer": "adamw"}, {"max_norm": 0.1}, {"threads": 2}, {"seed": 5}],
)
def test_what_the_check_does_not_depend_on_needs_no_other(axes):
    assert cache().get(replace(W, **axes), "bk") == CHECKED


@pytest.mark.parametrize(
    "axes",
    [{"precision": "bf16"}, {"seq_len": 65}, {"layers": 1}, {"clip_style": "per-layer"}, {"model": "synthetic:mlp"}],
)
def test_another_model_or_precision_is_checked_anew(axes):
    assert cache().get(replace(W, **axes), "bk") is None


def test_another_implementation_or_another_source_is_checked_anew():
    assert cache().get(W, "opacus") is None
    earlier = record("bk", W, source="abc")
    assert ParityCache({"bk": "changed"}, [replace(earlier, source="abc")]).get(W, "opacus") is None


def test_checks_of_an_earlier_run_count():
    assert ParityCache({"bk": "abc123"}, [record("bk", W)]).get(W, "bk") == (record().parity, COVERED)
    assert ParityCache({"bk": "abc123"}, [replace(record("bk", W), parity=None)]).get(W, "bk") is None
    refused = record("bk", W, Outcome.REFUSED, coverage=Coverage(7, 0))
    assert ParityCache({"bk": "abc123"}, [refused]).get(W, "bk") is None, "its coverage is not the check's"


def test_recheck_remembers_nothing():
    assert cache(recheck=True).get(W, "bk") is None
