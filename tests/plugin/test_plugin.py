"""The pytest plugin."""

from __future__ import annotations

import subprocess
import sys

from tests.conformance.mutants import mutant


def pytest_in(directory, *arguments):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=directory)


def test_checks_run_as_tests_beside_ones_own(tmp_path):
    (tmp_path / "test_mine.py").write_text("def test_mine(): pass\n")
    name = mutant(tmp_path, after="out.norms *= 1.5")
    impl = ["--dpbench-impl", f"bk,nonprivate,{name}", "--dpbench-case", "linear/two-axes,property/independence"]
    done = pytest_in(tmp_path, "--dpbench-verify", *impl)
    assert "1 failed, 5 passed, 1 xfailed" in done.stdout, done.stdout
    assert "wrong: 5.0e-01 in norms; an example moves the sum by 1.000 R  [wrong, not declared]" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_mistake_in_the_options_is_one_message(tmp_path):
    done = pytest_in(tmp_path, "--dpbench-verify", "--dpbench-impl", "bk2")
    assert done.returncode == 4
    assert "Did you mean bk" in done.stderr


def test_nothing_is_imported_until_asked(tmp_path):
    (tmp_path / "test_mine.py").write_text("import sys\ndef test_mine(): assert 'torch' not in sys.modules\n")
    assert pytest_in(tmp_path).returncode == 0
