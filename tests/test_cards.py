"""Cards: their figures hang together, and they are found by their names."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import FrozenInstanceError
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import dpbench.cards
from dpbench.cards import CONTEXT, FORMATS, card, cards, of_device
from dpbench.errors import DpbenchError

CARDS = list(cards().values())
each_card = pytest.mark.parametrize("each", CARDS, ids=lambda c: c.name)


@each_card
def test_every_figure_is_there_and_has_its_unit(each):
    assert type(each.memory) is int
    assert 8 * 2**30 < each.memory < 2**40
    assert 1e11 < each.bandwidth < 1e14
    assert 1e-6 < each.launch < 1e-4
    assert {"fp32"} <= set(each.peaks) <= set(FORMATS.values())
    assert all(1e12 < peak < 1e16 for peak in each.peaks.values())
    assert each.torch_names


@each_card
def test_every_card_has_a_source_with_address_and_title(each):
    assert re.match(r"https://\S+ \S+", each.source)
    assert each.notes


@each_card
def test_shorter_formats_are_no_slower(each):
    peaks = [each.peaks[f] for f in ("fp32", "tf32", "bf16") if f in each.peaks]
    assert peaks == sorted(peaks)
    assert each.peaks.get("fp64", 0) <= each.peaks["fp32"]


@each_card
def test_tensor_cores_are_all_dense_or_the_ratio_would_be_off(each):
    if "tf32" in each.peaks:
        assert each.peaks["bf16"] / each.peaks["tf32"] == pytest.approx(2, rel=0.03)
        assert each.peaks["fp16"] == each.peaks["bf16"]


@each_card
def test_the_memory_is_nearly_what_the_name_says(each):
    if size := re.search(r"(\d+)GB", each.name):
        assert 0.95 < each.memory / (int(size[1]) * 2**30) < 1


@each_card
def test_the_context_is_taken_off_the_memory(each):
    assert each.capacity == each.memory - CONTEXT > 0


def test_the_card_that_papers_use():
    a100 = card("A100-40GB")
    assert a100.memory / 2**30 == pytest.approx(39.4, abs=0.05)
    assert a100.bandwidth == 1.555e12
    assert [a100.peak(p) for p in ("fp32", "tf32", "bf16", "amp-bf16")] == [19.5e12, 156e12, 312e12, 312e12]


def test_names_are_unique():
    rows = tomllib.loads(Path(dpbench.cards.__file__).with_name("devices.toml").read_text())["card"]
    assert len({row["name"].lower() for row in rows}) == len(rows) == len(cards())
    assert list(cards()) == [c.name for c in CARDS]


def test_cards_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        CARDS[0].memory = 0
    with pytest.raises(TypeError):
        CARDS[0].peaks["fp32"] = 0.0
    assert len(set(CARDS)) == len(CARDS)


@each_card
def test_a_name_of_torch_is_of_one_card(each):
    for pattern in each.torch_names:
        for name in {pattern.removeprefix("*"), pattern.replace("*", "NVIDIA ")}:
            assert of_device(name) is each
            assert [c for c in CARDS if any(fnmatchcase(name, p) for p in c.torch_names)] == [each]


@pytest.mark.parametrize(
    ("torch_name", "name"),
    [
        ("NVIDIA A100-SXM4-40GB", "A100-40GB"),
        ("A100-PCIE-40GB", "A100-40GB"),
        ("NVIDIA A100 80GB PCIe", "A100-80GB-PCIe"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA L4", "L4"),
        ("Tesla T4", "T4"),
    ],
)
def test_cards_are_told_apart_by_what_torch_calls_them(torch_name, name):
    assert of_device(torch_name) is card(name)


@pytest.mark.parametrize(
    "name", ["NVIDIA GH200 480GB", "NVIDIA H200 NVL", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "", "*"]
)
def test_other_devices_and_slices_are_no_card(name):
    assert of_device(name) is None


def test_case_does_not_matter():
    assert card("a100-40gb") is card("A100-40GB")


def test_an_unknown_card_is_said_with_the_nearest():
    with pytest.raises(DpbenchError, match=r"unknown card 'A100-40'. Did you mean A100-40GB"):
        card("A100-40")
    with pytest.raises(DpbenchError, match=r"unknown card '\?'. Known: A10, "):
        card("?")


def test_a_missing_precision_is_said_with_what_to_take():
    with pytest.raises(DpbenchError, match=r"T4 has no tf32; it has fp32. Take one of these, or .* A100-40GB, "):
        card("T4").peak("tf32")
    with pytest.raises(DpbenchError, match=r"has no amp-bf16; it has fp32\. Take"):
        card("V100-SXM2-16GB").peak("amp-bf16")


def test_an_unknown_precision_is_said_with_the_nearest():
    with pytest.raises(DpbenchError, match=r"unknown precision 'bf17'. Did you mean bf16"):
        card("T4").peak("bf17")


def test_torch_is_not_needed():
    code = "import sys, dpbench.cards as c; c.of_device('Tesla T4').peak('fp32'); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
