from dpbench.document.sources import material
from dpbench.document.summary import sentences
from dpbench.records import Outcome
from tests.document.results_for_tests import LARGEST, OTHER, file, of, shaky, timed, wrong
from tests.records_for_tests import PARTIAL, record, workload


def said(directory, *records):
    return list(sentences(of(directory, *records)))


def test_the_fastest_by_how_much_and_the_leanest(tmp_path):
    found = said(tmp_path, timed("nonprivate", 1.0), timed("bk", 1.25, memory=1e9), timed("opacus", 2.5, memory=9e9))
    assert found == [
        "3 cells: 3 ok.",
        "On transformers:gpt2 B=8, bk is the fastest private implementation, at 0.80 (0.80-0.80) of the throughput of "
        "non-private training.",
        "bk is 2.00 (2.00-2.00) times as fast as opacus, the next.",
        "There bk needs the least memory: 1.00 GB, 0.50 times that of non-private training.",
        "Memory of 2 times non-private training's or more is needed by opacus (4.50 times).",
    ]


def test_where_the_interval_has_one_in_it_they_cannot_be_told_apart(tmp_path):
    found = said(tmp_path, record("bk", seconds=shaky(1.0)), timed("opacus", 1.01))
    assert "are the fastest private implementations and cannot be told apart" in found[1]
    assert not any("times as fast" in sentence for sentence in found)


def test_of_too_few_rounds_no_finding_is_made(tmp_path):
    found = said(tmp_path, record("bk", seconds=[[1.0]] * 2), record("opacus", seconds=[[3.0]] * 2))
    assert "bk took the least time, of too few rounds to tell whether it is the fastest" in found[2]
    assert "is the fastest private" not in " ".join(found)
    assert "2 cells have as few as 2 rounds: an interval needs 6" in found[1], "before what is told of them"


def test_wrong_ones_come_first_and_by_name(tmp_path):
    found = said(tmp_path, timed("nonprivate", 1.0), timed("bk", 2.0), wrong("vmap"))
    assert found[0] == (
        "vmap computes a wrong gradient on transformers:gpt2 B=8, and has no speed there: wte.weight differs by 0.13."
    )
    assert found[1] == "3 cells: 2 ok, 1 wrong."


def test_over_many_workloads_ranges_and_no_mean(tmp_path):
    records = []
    for i, slow in enumerate((1.25, 2.0, 2.0, 2.0, 2.0, 2.0, 2.5)):
        on = workload(batch=1 + i)
        records += [timed("nonprivate", 1.0, on), timed("bk", slow, on), timed("opacus", 5.0, on, memory=9e9)]
    found = said(tmp_path, *records)
    assert "Over 7 workloads the fastest private implementation is bk on 7." in found
    assert (
        "On each workload the private one that took the least time has 0.40 to 0.80 of the throughput of non-private "
        "training."
    ) in found
    assert any("opacus 0.20, bk 0.40 to 0.80" in sentence for sentence in found)
    assert "Over 7 workloads the least memory is needed by bk on 7." in found
    assert not any("mean" in sentence or "average" in sentence for sentence in found)


def test_each_machine_is_told_of_apart(tmp_path):
    first = file(tmp_path / "a", [timed("nonprivate", 1.0), timed("bk", 1.25), timed("vmap", 9.0)])
    second = file(tmp_path / "b", [timed("nonprivate", 1.0), timed("bk", 2.5), timed("vmap", 9.0)], OTHER)
    found = list(sentences(material([first, second])))
    assert any(s.startswith("On A: transformers:gpt2 B=8, bk is") and "at 0.80" in s for s in found)
    assert any(s.startswith("On B: transformers:gpt2 B=8, bk is") and "at 0.40" in s for s in found)


def test_who_trained_less_is_called_neither_fast_nor_lean(tmp_path):
    found = said(tmp_path, timed("bk", 0.1, memory=1.0, coverage=PARTIAL), timed("opacus", 2.0), timed("vmap", 3.0))
    assert "1 cell (bk: 1) trained only part of what was asked" in found[1]
    assert "opacus is the fastest private implementation" in found[2]
    assert "opacus and vmap need the least memory" in found[4]


def test_what_names_of_workloads_leave_out_is_told_before_they_are_used(tmp_path):
    on = workload("transformers:gpt2(vocab_size=64)", layers=1)
    found = said(tmp_path, timed("nonprivate", 1.0, on), timed("bk", 2.0, on))
    assert found[1] == (
        "Below, every workload has layers=1; transformers:gpt2 stands for transformers:gpt2(vocab_size=64)."
    )
    assert found[2].startswith("On transformers:gpt2 B=8, bk is")


def test_nothing_to_tell_is_told(tmp_path):
    cell = record("bk").cell
    assert said(tmp_path / "a") == ["No cell has been run yet: the files hold no record."]
    unrun = material([file(tmp_path / "b", [], cells=[cell])], "bk")
    assert list(sentences(unrun)) == ["No cell that matches -k bk has been run yet.", "Still to be run: 1."]


def test_refusals_and_memory_alone_make_sentences(tmp_path):
    refused = record("bk", outcome=Outcome.REFUSED, reason="it mixes")
    assert said(tmp_path / "a", refused) == ["1 cell: 1 refused."]
    oom = [record(n, outcome=Outcome.OUT_OF_MEMORY, reason="limit") for n in ("bk", "vmap")]
    assert said(tmp_path / "b", *oom) == ["2 cells: 2 out of memory.", "Ran out of memory: bk on 1, vmap on 1."]


def test_at_the_largest_batch_throughputs_are_compared_and_no_memory(tmp_path):
    found = said(tmp_path, timed("nonprivate", 1.0, LARGEST), timed("bk", 2.0, LARGEST), timed("vmap", 4.0, LARGEST))
    assert not any("least memory" in sentence or "Memory of" in sentence for sentence in found)


def test_who_failed_is_named(tmp_path):
    failed = [record("bk", workload(batch=b), Outcome.FAILED, "boom") for b in (1, 2)]
    assert said(tmp_path, *failed) == ["2 cells: 2 failed; bk failed on 2."]
