import json

from dpbench.comparability import differences, hardware_differences, same_hardware
from dpbench.environment import environment

A = {
    "machine": {"id": "m1", "cpu": "AMD EPYC", "cores": 8, "gpus": []},
    "versions": {"python": "3.11.7", "torch": "2.14.1", "timm": None},
    "flags": {"threads": 8, "deterministic": False, "OMP_NUM_THREADS": "1"},
    "dpbench": {"version": "0.1.0", "revision": "0123456789abcdef+changes"},
}


def with_(part, **values):
    return {**A, part: {**A[part], **values}}


def test_a_place_does_not_differ_from_itself():
    assert same_hardware(A, A)
    assert differences(A, A) == hardware_differences(A, A) == []


def test_hardware_is_the_same_only_where_both_are_known():
    assert not same_hardware(A, with_("machine", id="m2"))
    assert not same_hardware({}, {})
    assert not same_hardware(A, {})
    assert not same_hardware({"machine": "m1"}, {"machine": "m1"})


def test_hardware_that_differs_is_named():
    other = with_("machine", id="m2", cpu="Intel Xeon", gpus=[{"name": "NVIDIA L4", "memory_gib": 22}])
    assert hardware_differences(A, other) == ["cpu AMD EPYC -> Intel Xeon", "gpus none -> NVIDIA L4 22"]
    assert differences(A, other) == []


def test_software_and_flags_are_listed_as_people_say_them():
    assert differences(A, with_("versions", torch="2.15.0", timm="1.0")) == [
        "torch 2.14.1 -> 2.15.0",
        "timm none -> 1.0",
    ]
    assert differences(A, with_("flags", OMP_NUM_THREADS=None)) == ["OMP_NUM_THREADS 1 -> unset"]
    assert differences(A, with_("flags", OMP_NUM_THREADS="")) == ['OMP_NUM_THREADS 1 -> ""']
    assert differences(A, with_("flags", deterministic=True)) == ["deterministic off -> on"]
    assert differences(A, with_("dpbench", version="0.2.0", revision=None)) == [
        "dpbench 0.1.0 -> 0.2.0",
        "dpbench revision 0123456789ab+changes -> unknown",
    ]


def test_what_only_one_recorded_is_not_compared():
    """Files of older versions know less."""
    more = with_("flags", governor="performance")
    assert differences(A, more) == differences(more, A) == differences({}, A) == []


def test_what_a_file_kept_equals_what_is_there_now():
    now = environment()
    kept = json.loads(json.dumps(now))
    assert same_hardware(kept, now)
    assert differences(kept, now) == []
