from dpbench.document.labels import labels
from dpbench.records import Workload


def test_what_all_have_is_said_once_and_sizes_always():
    small, large = (Workload(model="m", batch=b, threads=1, layers=2) for b in (4, 8))
    found = labels([small, large])
    assert list(found.of.values()) == ["m B=4", "m B=8"]
    assert found.common == "layers=2, threads=1"
    assert found.notes() == ["in every line: layers=2, threads=1"]


def test_what_varies_is_said_where_it_is_no_default():
    one, two = Workload(model="m", batch=4), Workload(model="m", batch=4, precision="bf16")
    assert list(labels([one, two]).of.values()) == ["m B=4", "m B=4 precision=bf16"]


def test_options_are_said_where_a_name_would_not_tell_two_models_apart():
    deep, wide, other = (Workload(model=m, batch=1) for m in ("m(depth=9)", "m(width=9)", "n(depth=9)"))
    found = labels([deep, wide, other])
    assert list(found.of.values()) == ["m(depth=9) B=1", "m(width=9) B=1", "n B=1"]
    assert found.models == {"n": "n(depth=9)"}
    assert found.notes() == ["n stands for n(depth=9)"]


def test_no_two_workloads_are_called_the_same():
    every = [
        Workload(model=m, batch=b, seq_len=t, trainable=which, device=device)
        for m in ("m", "m(a=1)")
        for b in (1, "max")
        for t in (None, 8)
        for which in ("all", "last")
        for device in ("cpu", "cuda")
    ]
    assert len(set(labels(every).of.values())) == len(every)


def test_without_a_workload_there_is_nothing_to_say():
    assert labels([]).notes() == []
