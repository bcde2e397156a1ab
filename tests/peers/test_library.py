"""What is said of a library that is run as itself, whether it is there or not."""

from __future__ import annotations

import subprocess
import sys

import numpy
import pytest

from dpbench.clipping import Clip
from dpbench.errors import DpbenchError, Refused
from dpbench.registry import libraries
from implementations.peers.library import Library, said

NOWHERE = Library("Nowhere", "a_module_that_is_nowhere", "pip install nowhere")
NUMPY = Library("NumPy", "numpy", "pip install numpy")


def test_the_title_has_the_version_of_what_is_there():
    assert NUMPY.titled("eager") == f"NumPy {numpy.__version__}, eager"
    assert NUMPY.load() is numpy


def test_the_version_of_a_checkout_on_the_path_is_read_without_importing_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "checked_out.py").write_text("__version__ = '3.1'\nraise ImportError('no luck\\nat all')\n")
    (tmp_path / "unversioned.py").write_text("")
    library = Library("Checked out", "checked_out", "git clone")
    assert library.titled("fast") == "Checked out 3.1, fast"
    assert Library("Unversioned", "unversioned", "").version == "of unknown version"
    with pytest.raises(DpbenchError, match=r"checked_out 3.1 is there and cannot be imported: ImportError: no luck\. "):
        library.load()


def test_what_is_not_there_says_where_to_get_it():
    assert NOWHERE.titled("fast") == "Nowhere, fast (needs a_module_that_is_nowhere: pip install nowhere)"
    with pytest.raises(DpbenchError, match=r"a_module_that_is_nowhere is not installed.*Get it: pip install nowhere"):
        NOWHERE.load()


def test_without_the_libraries_everything_is_listed_and_prepare_says_what_to_install():
    code = """
import sys
sys.modules.update(opacus=None, fastDP=None)
from torch import nn
from dpbench import prepare
from dpbench.cli.list import list_
from dpbench.errors import DpbenchError
from dpbench.registry import libraries
list_("implementations")
for name in libraries():
    try:
        prepare(name, nn.Linear(2, 2), None)
    except DpbenchError as error:
        print(name, "raises", error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    for name in libraries():
        module = "opacus" if "opacus" in name else "fastDP"
        remedy = (
            "pip install 'dpsgd-bench[peers]'" if module == "opacus" else "pip install git+https://github.com/awslabs"
        )
        listed, raised = (line for line in lines if line.split()[0] == name)
        assert f"(needs {module}: {remedy}" in listed
        assert f"{module} is not installed" in raised
        assert remedy in raised
    assert ["opacus", "Opacus algorithm"] in [line.split(maxsplit=1) for line in lines]


def test_what_a_library_raises_is_its_refusal_in_its_words():
    with pytest.raises(Refused, match=r"^NumPy .* cannot run this: ValueError: one line$"), NUMPY.refusing():
        raise ValueError("one line\nand another")


@pytest.mark.parametrize(
    "error", [RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), DpbenchError("ours")]
)
def test_memory_and_our_own_errors_are_no_refusals(error):
    with pytest.raises(type(error)) as found, NUMPY.refusing():
        raise error
    assert found.value is error


def test_the_first_of_several_errors_is_said():
    assert said(NotImplementedError([NotImplementedError("first\nof two"), ValueError("second")])) == (
        "NotImplementedError: first"
    )
    assert said(KeyError()) == "KeyError"


@pytest.mark.parametrize("clip", [Clip(2.0), Clip(2.0, "automatic"), Clip(2.0, stability=0.01)])
def test_other_clipping_than_is_built_in_is_refused(clip):
    with pytest.raises(Refused, match=r"clips by min\(1, R / \(\|\|g_i\|\| \+ 1e-06\)\) and not otherwise; asked for"):
        NUMPY.refuse_other_clipping(clip, 1e-6)
    NUMPY.refuse_other_clipping(Clip(2.0, stability=1e-6), 1e-6)
