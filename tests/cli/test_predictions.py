"""Predictions as text: made-up ones, and what is said about each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from dpbench.cards import card
from dpbench.cli.predictions import leading, lines
from dpbench.complexity.prediction import Prediction
from dpbench.complexity.roofline import Seconds
from dpbench.complexity.space import Space
from dpbench.complexity.trace import Operation, Trace
from dpbench.records import Workload
from dpbench.registry import available, load

T4 = card("T4")


def operation(module, flops, parameter="w", within="layer"):
    return Operation("aten.mm", module, parameter, within if parameter else "attn", "float32", 1, flops, 10)


def made(name="bk", modules="1 2a 3 2b", flops=None, others=0, batch=8, peak=2000, **changes):
    """A prediction whose formulas are its trace; ``flops`` by module."""
    flops = {"1": 1000, "2a": 1000, "2b": 1000} if flops is None else flops
    operations = [operation(module, n) for module, n in flops.items()]
    operations += [operation("1", others, parameter="")] * bool(others)
    alive = {"1: layer": peak * 3 // 4, "2a: layer": peak // 4} if peak else {}
    given = {
        "implementation": name,
        "workload": Workload(model="synthetic:mlp", batch=batch, seq_len=16),
        "parameters": 1500,
        "trainable": 1500,
        "modules": modules,
        "analytic": Counter(flops),
        "kernels": Counter({(module, "w"): n for module, n in flops.items()}),
        "formula": Counter({(module, "w"): n for module, n in flops.items()}),
        "space": Space(1, 2, 3, 4),
        "trace": Trace(tuple(operations), {"2a": peak}, alive, resident=6000),
    }
    return Prediction(**given | changes)


def plain(**changes):
    return made("nonprivate", "1 2a 2b", peak=1000, **changes)


def cells(found, start):
    """The one line that starts so, apart."""
    (line,) = [line for line in found if line.strip().startswith(start)]
    return line.split()


def tables(found):
    """The rows of the costs and of the FLOPs by module, by implementation."""
    middle = found.index("", 1)
    end = found.index("", middle + 1)
    costs, modules = found[1:middle], found[middle + 1 : end]
    return [{line.split()[0]: line for line in part} for part in (costs, modules)]


def test_the_head_is_the_workload_and_what_is_there_before():
    assert lines([plain(), made()])[0] == "synthetic:mlp B=8 T=16  (1.50 k parameters, 6.00 kB before the step)"


def test_costs_stand_beside_those_of_the_baseline():
    bk = made(flops={"1": 1000, "2a": 1000, "2b": 1000, "3": 1500})
    costs, _ = tables(lines([plain(), bk]))
    assert costs["nonprivate"].split()[1:7] == ["3.00", "k", "1.00", "1.00", "kB", "1.00"]
    assert costs["bk"].split()[1:7] == ["4.50", "k", "1.50", "2.00", "kB", "2.00"]
    assert costs["bk"].endswith("  75% 1: layer, 25% 2a: layer")


def test_without_a_baseline_there_is_no_ratio():
    costs, _ = tables(lines([made()]))
    assert costs["bk"].split()[1:6] == ["3.00", "k", "-", "2.00", "kB"]


def test_three_of_what_is_alive_are_named_the_largest_first():
    alive = {"small": 5, "large": 60, "middle": 25, "less": 10}
    trace = Trace((operation("1", 10),), {"1": 100}, alive)
    costs, _ = tables(lines([made(trace=trace)]))
    assert costs["bk"].endswith("60% large, 25% middle, 10% less")


def test_a_step_that_allocates_nothing_has_nothing_alive():
    costs, _ = tables(lines([made(peak=0)]))
    assert costs["bk"].endswith("0 B      -")


def test_modules_that_nobody_has_are_no_columns_and_are_not_explained():
    bk = made(flops={"1": 1000, "2a": 1000, "3": 500, "2b": 1000})
    found = lines([plain(), bk])
    _, modules = tables(found)
    assert modules["FLOPs"].split() == ["FLOPs", "by", "module", "1", "2a", "2b", "3", "formula"]
    assert modules["nonprivate"].split() == ["nonprivate", "1.00", "k", "1.00", "k", "1.00", "k", "="]
    assert modules["bk"].split() == ["bk", *["1.00", "k"] * 3, "500", "="]
    (explained,) = [line for line in found if line.startswith("1: forward")]
    assert "3: ghost norms" in explained
    assert "4:" not in explained
    assert "again:" not in explained


def test_a_second_backward_is_one_column():
    ghostclip = made("x", "1 2a 2b 3 2a 2b", {"1": 1000, "2a again": 700, "2b again": 300})
    found = lines([ghostclip])
    _, modules = tables(found)
    assert modules["FLOPs"].split()[3:] == ["1", "again", "formula"]
    assert modules["x"].split() == ["x", "1.00", "k", "1.00", "k", "="]
    assert any("again: a second backward" in line for line in found)


@pytest.mark.parametrize("axes", [{"checkpointing": True}, {"loss_chunk": 4}])
def test_what_is_computed_again_is_said_to_be_in_no_formula(axes):
    def said(workload):
        return any("again in the backward" in line for line in lines([plain(workload=workload)]))

    workload = Workload(model="synthetic:mlp", batch=8, seq_len=16)
    assert not said(workload)
    assert said(replace(workload, **axes))


def test_attention_is_apart_and_no_formula_s():
    _, modules = tables(lines([plain(others=400)]))
    assert modules["FLOPs"].split()[-2:] == ["attention", "formula"]
    assert modules["nonprivate"].split()[-2:] == ["400", "="]


@pytest.mark.parametrize(
    ("analytic", "said"), [({"1": 3300}, "+10%"), ({"1": 2970}, "-1.0%"), ({"1": 3000}, "="), (None, "-")]
)
def test_how_far_the_formula_is_from_the_trace(analytic, said):
    found = made(analytic=None if analytic is None else Counter(analytic))
    _, modules = tables(lines([found]))
    assert modules["bk"].split()[-1] == said


@pytest.mark.parametrize(
    ("name", "modules", "stated", "counted"),
    [("fastgradclip", "1 2a 4 2a 2b", 8, 10), ("fastgradclip_improved", "1 2a 4 2b", 6, 8)],
)
def test_the_paper_s_figure_stands_beside_the_counted_one(name, modules, stated, counted):
    told = (
        f"{name}: the paper states {stated} BTpd for large T; its modules, {modules}, at 2 BTpd each make {counted}, "
        "which is what runs"
    )
    assert told in lines([plain(), made(name, modules)])


def test_where_both_agree_or_the_paper_has_none_nothing_is_said():
    for name, modules in (("bk", "1 2a 3 2b"), ("mine", "1 2a 4 2b"), ("nonprivate", "1 2a 2b")):
        assert not any("the paper states" in line for line in lines([made(name, modules)]))


def test_the_counted_figures_are_those_of_the_modules():
    found = {name: leading(load(name).MODULES) for name in available()}
    assert found == {
        "nonprivate": 6,
        "tf_privacy": 6,
        "vmap": 6,
        "opacus": 8,
        "opacus_improved": 6,
        "fastgradclip": 10,
        "fastgradclip_improved": 8,
        "ghostclip": 10,
        "mixghostclip": None,
        "bk": 6,
        "bk_mixghostclip": None,
        "bk_mixopt": None,
    }


def test_a_refusal_has_its_reason_and_no_figures():
    refused = made("vmap", trace=None, reason="it has no rule for sorting")
    found = lines([plain(), refused])
    assert found[-1] == "vmap refuses: it has no rule for sorting"
    assert sum("vmap" in line for line in found) == 1


def test_where_all_refuse_there_are_no_tables():
    found = lines([made(name, trace=None, reason="too large") for name in ("nonprivate", "bk")])
    assert found == [
        "synthetic:mlp B=8 T=16  (1.50 k parameters, 0 B before the step)",
        "nonprivate refuses: too large",
        "bk refuses: too large",
    ]


def test_real_tensors_are_told():
    told = "bk: traced on real tensors of small batches and extrapolated along a line, above which its peak may lie"
    assert told in lines([made(on="real")])
    assert not any("real tensors" in line for line in lines([made()]))


def test_what_no_kernel_explains_is_told_with_its_sign_and_place():
    kernels = Counter({("1", "w"): 400, ("2a", "w"): 3000, ("2b", "w"): 1000})
    other = Counter()
    told = "bk: other kernels than those counted: -2.00 k in 2a of w, +600 in 1 of w"
    assert told in lines([made(kernels=kernels, formula=other)])


def test_no_more_than_three_of_them_are_told_the_farthest_first():
    kernels = Counter({("1", f"w{i}"): i for i in range(1, 6)})
    trace = Trace((operation("1", 100),), {"1": 1})
    found = made(kernels=kernels, formula=kernels, trace=trace)
    (told,) = [line for line in lines([found]) if "other kernels" in line]
    assert told.endswith("+100 in 1 of w, -5 in 1 of w5, -4 in 1 of w4, 3 more")


def test_what_the_formula_explains_needs_no_kernel():
    assert not any("other kernels" in line for line in lines([made(kernels=Counter())]))


def test_who_declares_no_modules_has_nothing_to_explain():
    found = lines([made(modules="my own", analytic=None, kernels=Counter(), formula=Counter(), space=None)])
    assert not any("other kernels" in line for line in found)
    assert not any("the paper states" in line for line in found)


def timed(prediction, expected):
    time = Seconds(low=expected / 2, expected=expected, high=expected * 4)
    return Prediction(**{f: getattr(prediction, f) for f in Prediction.__slots__} | {"seconds": time})


def test_a_card_has_columns_of_time_and_its_caveat():
    found = lines([timed(plain(), 0.002), timed(made(), 0.004)], T4)
    costs, _ = tables(found)
    head = ["implementation", "T4", "range", "examples/s", "ratio", "FLOPs", "ratio", "peak", "ratio"]
    assert costs["implementation"].split()[:9] == head
    # 8 examples in 2 ms are 4000 in a second.
    assert costs["nonprivate"].split()[1:10] == ["2.00", "ms", "1.00", "ms", "-", "8.00", "ms", "4000", "1.00"]
    assert costs["bk"].split()[1:10] == ["4.00", "ms", "2.00", "ms", "-", "16.0", "ms", "2000", "0.50"]
    assert any(line.startswith("T4: a roofline of published peaks") for line in found)


def test_without_a_card_there_is_no_time():
    found = lines([plain(), made()])
    assert not any("roofline" in line or "examples/s" in line for line in found)


def test_on_a_card_without_a_baseline_there_is_no_ratio():
    costs, _ = tables(lines([timed(made(), 0.002)], T4))
    assert costs["bk"].split()[8:13] == ["4000", "-", "3.00", "k", "-"]


def largest():
    """Each at its largest batch: bk takes half as many examples, at twice the FLOPs for each."""
    bk = made(batch=4, flops={"1": 1000, "2a": 1000, "2b": 1000})
    return [timed(plain(batch=8), 0.002), timed(bk, 0.002)]


def test_where_batches_differ_each_has_its_own_and_the_head_says_max():
    found = lines(largest(), T4)
    costs, _ = tables(found)
    assert found[0].startswith("synthetic:mlp B=max T=16  (")
    assert costs["implementation"].split()[:3] == ["implementation", "B", "T4"]
    assert [costs[name].split()[1] for name in ("nonprivate", "bk")] == ["8", "4"]


def test_where_batches_differ_ratios_are_for_each_example():
    found = lines(largest(), T4)
    costs, _ = tables(found)
    assert costs["bk"].split()[9:11] == ["2000", "0.50"], "examples per second"
    assert costs["bk"].split()[11:14] == ["3.00", "k", "2.00"], "FLOPs"
    assert "ratio of FLOPs: for each example" in found
    assert "ratio of FLOPs: for each example" not in lines([plain(), made()])


def test_where_batches_are_the_same_there_is_no_column_of_them():
    costs, _ = tables(lines([plain(), made()]))
    assert "B" not in costs["implementation"].split()


def test_who_refuses_has_no_batch_to_differ_in():
    refused = made("vmap", batch=1, trace=None, reason="one example needs more")
    found = lines([plain(), made(), refused])
    assert found[0].startswith("synthetic:mlp B=8 T=16")


def test_a_first_one_that_refuses_does_not_give_its_batch_to_the_others():
    refused = made("mine", batch=1, trace=None, reason="one example needs more")
    assert lines([refused, made(batch=8)])[0].startswith("synthetic:mlp B=8 T=16")
