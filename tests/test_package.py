import subprocess
import sys
from pathlib import Path

import pytest

import dpbench


def test_importing_dpbench_loads_no_torch():
    code = "import sys, dpbench; print('torch' in sys.modules); dpbench.Workload; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_everything_it_promises_is_there():
    for name in dpbench.__all__:
        assert getattr(dpbench, name) is not None
        assert name in dir(dpbench)


def test_anything_else_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'prepaer'"):
        dpbench.prepaer  # noqa: B018


def test_no_public_name_is_a_module_of_the_package():
    """Importing the module would put it in the name's place."""
    modules = {path.stem for path in Path(dpbench.__file__).parent.iterdir()}
    assert not modules & set(dpbench.__all__)
