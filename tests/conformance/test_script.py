"""A script that shows a wrong verdict stands alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dpbench.cases import CASES
from dpbench.conformance.judge import judge
from dpbench.conformance.script import script, write
from dpbench.conformance.source import standalone
from tests.conformance.mutants import mutant


def run(path):
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=path.parent, timeout=300)


def test_it_runs_anywhere_and_shows_the_error_of_the_verdict(tmp_path):
    name = mutant(tmp_path, after="out.grads['0.weight'] *= 1.001")
    case = CASES["linear/three-axes"]
    path = write(case, name, judge(case, name), tmp_path / "wrong")
    done = run(path)
    assert done.returncode == 1, done.stderr
    assert "0.weight                       relative error 1.00e-03" in done.stdout
    assert "0.bias                         relative error 0.00e+00" in done.stdout
    assert case.reason in path.read_text()
    assert "off by 0.001 (relative), most in 0.weight" in path.read_text()


def test_norms_alone_may_be_wrong(tmp_path):
    name = mutant(tmp_path, after="out.norms *= 1.001")
    case = CASES["linear/two-axes"]
    assert run(write(case, name, judge(case, name), tmp_path / "wrong")).returncode == 1


def test_with_a_right_implementation_it_says_so(tmp_path):
    path = tmp_path / "right.py"
    case = CASES["linear/two-axes"]
    path.write_text(script(case, "bk", judge(case, "bk"), path.name))
    done = run(path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", CASES)
def test_the_source_of_every_case_stands_alone(name):
    """It builds the same problem, without dpbench."""
    imports, text = standalone(CASES[name].build)
    assert not any("dpbench" in line for line in imports)
    assert "@case" not in text
    assert "import dpbench" not in text
    lines = "\n".join(["from __future__ import annotations", *sorted(imports), text])
    compile(lines, name, "exec")
