from dataclasses import replace

from dpbench.document.methods import paragraphs
from dpbench.document.sources import material
from dpbench.records import Parity
from tests.document.results_for_tests import LARGEST, OTHER, file, timed
from tests.records_for_tests import ENVIRONMENT, record, workload


def text(*files):
    return "\n".join(paragraphs(material(files)))


def test_it_says_on_what_with_what_and_how(tmp_path):
    environment = {
        "machine": {"id": "m", "cpu": "EPYC", "cores": 2, "memory_gib": 24, "gpus": []},
        "versions": {"torch": "2.14.1", "python": "3.11.7", "transformers": "5.24.0", "timm": "1.0", "cuda": "13"},
        "flags": {"threads": 4},
        "settings": {"budget_s": 0.5},
        "dpbench": {"version": "0.1.0"},
    }
    found = text(file(tmp_path, [timed("nonprivate", 1.0), timed("bk", 2.0)], environment))
    for said in (
        "taken with dpbench 0.1.0 on EPYC, 2 cores, 24 GiB, 2030-01-01.",
        "Software: PyTorch 2.14.1, Python 3.11.7, Transformers 5.24.0.",
        "Precision: fp32. Device: cpu. CPU threads: 4.",
        "without noise and without an optimizer",
        "explicit loop over the examples, in float64, where the largest relative error may be 1e-08",
        "Timings were taken in 6 rounds of fresh processes.",
        "interleaved, in an order drawn anew, for 0.5 s each.",
        "95 % percentile bootstrap intervals",
        "peak of one step above parameters, buffers and batch",
    ):
        assert said in found
    assert "timm" not in found
    assert "CUDA 13" not in found


def test_too_few_rounds_and_native_checks_are_said_as_they_were(tmp_path):
    native = replace(record("bk", seconds=[[1.0]]), parity=Parity(True, 1e-4, 1e-3, "bf16"))
    found = text(file(tmp_path, [native]))
    assert "1 round of fresh processes" in found
    assert "With fewer than 6 rounds no interval is given." in found
    assert "in the precision of the run (bf16)" in found
    assert "float64" not in found


def test_other_protocols_are_said_where_they_were(tmp_path):
    found = text(file(tmp_path, [timed("bk", 1.0, LARGEST), timed("bk", 1.0, workload(step="train"))], run="r"))
    assert "each had a process of its own in every round" in found
    assert "Sides of one run were timed in turns" in found
    assert "train (forward, clipping, noise, scaling and the optimizer)" in found


def test_each_source_has_its_machine(tmp_path):
    files = [file(tmp_path / "a", [timed("bk", 1.0)]), file(tmp_path / "b", [timed("bk", 1.0)], OTHER)]
    found = list(paragraphs(material(files)))
    assert found[0].startswith("Source A: All measurements were taken with dpbench on made up")
    assert found[1].startswith("Source B: All measurements were taken with dpbench on another, 8 cores")


def test_sources_of_one_machine_share_a_paragraph_that_says_what_differs(tmp_path):
    train = workload(step="train", precision="bf16")
    files = [
        file(tmp_path / "a", [timed("bk", 1.0)]),
        file(tmp_path / "b", [timed("bk", 1.0), timed("bk", 1.0, train)]),
    ]
    setting, second, *_ = paragraphs(material(files))
    assert setting.startswith("All measurements were taken with dpbench on made up")
    assert "Precision: fp32, bf16 [Source B]. Device: cpu." in setting
    assert "without an optimizer); train (forward, clipping, noise, scaling and the optimizer) [Source B]." in setting
    assert "taken with" not in second


def test_of_nothing_there_is_nothing_to_say(tmp_path):
    assert text(file(tmp_path, [], ENVIRONMENT)) == ""


def test_works_are_credited_of_what_occurs_alone(tmp_path):
    found = text(file(tmp_path / "a", [timed("nonprivate", 1.0), timed("bk_mixopt", 1.0), timed("ghostclip", 1.0)]))
    assert (
        "as in DP-SGD (Abadi et al., 2016), by the algorithms of bk_mixopt (Bu et al., 2022; Bu et al., 2023); "
        in found
    )
    assert "ghostclip (Li et al., 2022)." in found
    assert "DP-SGD" not in text(file(tmp_path / "b", [timed("nonprivate", 1.0)]))
