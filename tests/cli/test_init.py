"""``dpbench init``, and the gate that it leaves behind, as they are used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dpbench
from dpbench.cli import app

FILES = {"suites/ci.toml", "pyproject.toml", ".github/workflows/dpbench.yml", ".github/workflows/dpbench-nightly.yml"}
PROJECT = '[project]\nname = "mine"\nversion = "1"\n'

OWN = """
from dpbench.interface import Supports
from dpbench.tapestep import TapeStep

TITLE = "Mine"
MODULES = "1 2a 4 5"
SUPPORTS = Supports(groups=True, units=True)
PRIVATE = True


def prepare(model, losses, clip):
    return TapeStep(model, losses, clip, clipped_sum, attached=False)


def clipped_sum(tape, clipping):
    book = []

    def visit(g):
        clipping.add_squared_norms(g.name, g.squared_ghost_norm())
        book.append(g)

    tape.backward(visit)
    return {g.name: g.weighted_sum(clipping.factor(g.name)) for g in book}
"""

TWICE = """

class Twice:
    def __init__(self, step):
        self.step, self.close = step, step.close

    def __call__(self, batch, **rest):
        self.step(batch, **rest)
        return self.step(batch, **rest)


def prepare(model, losses, clip):
    return Twice(TapeStep(model, losses, clip, clipped_sum, attached=False))
"""


def init(*arguments):
    return CliRunner().invoke(app, ["init", *map(str, arguments)])


def files(directory):
    return {p.relative_to(directory).as_posix(): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


def test_an_empty_folder(tmp_path):
    done = init(tmp_path)
    assert done.exit_code == 0, done.output
    assert files(tmp_path).keys() == FILES
    assert done.stdout.count("written") == 4
    assert "put your own into suites/ci.toml" in done.stdout
    assert "dpbench gate --base HEAD" in done.stdout


def test_twice_changes_nothing_and_says_what_is_there(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    init(tmp_path, "--impl", "mine.py")
    before = files(tmp_path)
    done = init(tmp_path)
    assert done.exit_code == 0
    assert files(tmp_path) == before
    assert done.stdout.count("kept") == 4
    assert "pyproject.toml: it has [tool.dpbench.gate]" in done.stdout


def test_what_is_there_is_kept_and_the_rest_is_written(tmp_path):
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "ci.toml").write_text("mine")
    done = init(tmp_path)
    assert done.exit_code == 0
    assert files(tmp_path).keys() == FILES
    assert files(tmp_path)["suites/ci.toml"] == b"mine"
    assert files(tmp_path)["pyproject.toml"].decode().startswith(PROJECT)
    assert f"kept     {tmp_path / 'suites' / 'ci.toml'}: it is there (--force writes over it)" in done.stdout


def test_force_writes_over_files_and_leaves_rules_alone(tmp_path):
    init(tmp_path)
    fresh = files(tmp_path)
    (tmp_path / "suites" / "ci.toml").write_text("mine")
    rules = PROJECT + '[tool.dpbench.gate]\nsuite = "other"\n'
    (tmp_path / "pyproject.toml").write_text(rules)
    assert init(tmp_path, "--force").exit_code == 0
    assert files(tmp_path)["suites/ci.toml"] == fresh["suites/ci.toml"]
    assert files(tmp_path)["pyproject.toml"].decode() == rules


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--impl", "none.py"], "there is no file none.py"),
        (["--impl", "../beside.py"], "there is no file ../beside.py"),
        (["--impl", "bkk"], "Did you mean bk"),
        (["--model", "none.py:build"], "there is no file none.py"),
        (["--model", "mine.py"], "names no function; expected path/to/file.py:build"),
        (["--model", "nowhere:net"], "unknown model family"),
    ],
)
def test_what_is_not_there_is_refused_and_nothing_is_written(tmp_path, options, message):
    (tmp_path / "beside.py").write_text("")
    (here := tmp_path / "here").mkdir()
    (here / "mine.py").write_text("")
    done = init(here, *options)
    assert message in str(done.exception)
    assert files(here).keys() == {"mine.py"}


def test_paths_are_those_from_the_directory(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "mine.py").write_text("")
    init(tmp_path, "--impl", tmp_path / "src" / "mine.py", "--model", "./src/mine.py:build(width=3)")
    suite = (tmp_path / "suites" / "ci.toml").read_text()
    assert 'implementation = ["nonprivate", "src/mine.py"]' in suite
    assert 'model = "src/mine.py:build(width=3)"' in suite


def test_a_folder_within_a_repository_is_told_where_workflows_belong(tmp_path):
    (tmp_path / ".git").mkdir()
    assert "move .github there" in init(tmp_path / "sub").stdout
    assert "move .github there" not in init(tmp_path).stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Begun with ``dpbench init``, and committed; what is timed is left out."""
    where = tmp_path_factory.mktemp("repository")
    (where / "mine.py").write_text(OWN)
    assert init(where, "--impl", "mine.py").exit_code == 0
    suite = where / "suites" / "ci.toml"
    suite.write_text(suite.read_text().replace('["traced", "seconds"]', '["traced"]'))
    as_somebody = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for words in (["init", "--quiet"], ["add", "."], [*as_somebody, "commit", "--quiet", "--message", "Begin"]):
        subprocess.run(["git", *words], cwd=where, check=True)
    return where


def gate(where, *options):
    command = [sys.executable, "-c", "from dpbench.cli import main; main()", "gate", "--base", "HEAD", *options]
    source = str(Path(dpbench.__file__).parents[1])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GITHUB_")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, timeout=300)


def test_the_gate_that_was_begun_passes_an_unchanged_tree(repository):
    done = gate(repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "of 3 cells: passes" in done.stdout
    assert "flops: 3 same" in done.stdout


def test_twice_the_flops_do_not_pass_and_are_named(repository):
    (repository / "mine.py").write_text(OWN + TWICE)
    try:
        done = gate(repository, "-k", "mlp")
    finally:
        (repository / "mine.py").write_text(OWN)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "mine.py on synthetic:mlp(width=256,depth=4) B=32 threads=1, flops: 2.00x more" in done.stdout
    assert "do not pass" in done.stdout


def test_a_selection_of_nothing_is_5(repository):
    done = gate(repository, "-k", "opacus")
    assert done.returncode == 5
    assert "Traceback" not in done.stderr
