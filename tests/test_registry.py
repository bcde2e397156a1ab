"""How implementations are found, and what is said of those that are none."""

from __future__ import annotations

import pytest

from dpbench.errors import DpbenchError
from dpbench.registry import ablations, available, libraries, load, source_hash


def test_all_twelve_are_found_with_their_titles():
    assert len(available()) == 12
    assert available()["opacus"] == "Opacus algorithm"


def test_libraries_are_listed_apart():
    assert set(libraries()) & set(available()) == set()
    assert {"lib:opacus/hooks", "lib:opacus/functorch", "lib:opacus/ew", "lib:opacus/fgc", "lib:opacus/ghost"} <= set(
        libraries()
    )
    assert {"lib:fastdp/bk-ghost", "lib:fastdp/bk-mixghostclip", "lib:fastdp/bk-mixopt"} <= set(libraries())


def test_ablations_are_listed_apart_too():
    assert list(ablations()) == ["ablation:bk-without-bookkeeping", "ablation:bk-without-ghost-differentiation"]
    assert not ablations().keys() & {**available(), **libraries()}.keys()


def test_the_hash_of_a_library_changes_with_its_version(monkeypatch):
    before = source_hash("lib:opacus/hooks")
    monkeypatch.setattr(load("lib:opacus/hooks"), "TITLE", "Opacus 0.1, hooks")
    assert source_hash("lib:opacus/hooks") != before


def test_an_unknown_name_comes_with_near_ones():
    with pytest.raises(DpbenchError, match=r"unknown implementation 'bk_mixop'. Did you mean bk_mixopt"):
        load("bk_mixop")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TITLE = 'x'", "SUPPORTS = None; expected a Supports|MODULES"),
        ("def", "could not be imported: SyntaxError"),
        ("raise ValueError('no')", "could not be imported: ValueError: no"),
        (
            "from dpbench.interface import Supports\nTITLE, MODULES, SUPPORTS, PRIVATE = 'a', 'b', Supports(), True",
            r"has no prepare\(model, losses, clip\)",
        ),
        (
            "from dpbench.interface import Supports\nTITLE, MODULES, SUPPORTS, PRIVATE = 'a', 'b', Supports(), True\n"
            "STABILITY = '1e-6'",
            r"STABILITY = '1e-6'; expected a float up to 0.1, the s of its clipping factor",
        ),
    ],
)
def test_a_file_that_is_no_implementation_is_told_why(tmp_path, text, message):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(DpbenchError, match=message):
        load(str(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DpbenchError, match=r"no file .*nothing\.py; expected the path of a Python file"):
        load(str(tmp_path / "nothing.py"))


def test_the_hash_is_of_the_source(tmp_path):
    text = (
        "from dpbench.interface import Supports\nfrom dpbench.registry import load\n"
        "TITLE, MODULES, SUPPORTS, PRIVATE = 'a', 'b', Supports(), True\n"
    )
    hashes = set()
    for i in range(2):
        path = tmp_path / f"mine{i}.py"
        path.write_text(text + f"prepare = load('bk').prepare  # {i}\n")
        hashes.add(source_hash(str(path)))
    assert len(hashes) == 2
    assert source_hash("bk") == source_hash("bk")
