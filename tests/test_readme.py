"""What the README shows works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import torch
import typer

import tests.zoo as zoo
from dpbench import papers, suite
from dpbench.cli import app
from dpbench.models import build
from dpbench.preparation import prepare
from dpbench.records import Cell, Workload
from dpbench.reference import per_example
from dpbench.registry import ablations, available, load
from dpbench.reproducing.plan import points
from dpbench.rules import rules
from dpbench.scaffold import WORKFLOWS, scaffold

README = (Path(__file__).parents[1] / "README.md").read_text()


def block(language: str, beginning: str) -> str:
    for found in re.findall(rf"```{language}\n(.*?)```", README, flags=re.S):
        if found.startswith(beginning):
            return found
    raise AssertionError(f"no {language} block begins with {beginning!r}")


def test_your_own_implementation_is_complete_and_right(tmp_path):
    path = tmp_path / "ghost.py"
    path.write_text(block("python", '"""Ghost norms'))
    model, losses, batch, clip, expected = zoo.oracle("tokens")
    step = prepare(str(path), model, losses, clip)
    assert zoo.error(zoo.run(step, batch), expected) < 1e-12
    unit = torch.tensor([1, 0, 1, 1, 2])
    assert zoo.error(step(batch, unit=unit), per_example(model, losses, batch, clip, unit=unit)) < 1e-12


def test_your_own_model_is_complete(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(block("python", "# mine.py"))
    task = build(Workload(model=f"{path}:build", batch=4))
    batch = task.batches(4, 0)
    norms = per_example(task.model, task.losses, batch, zoo.Clip()).norms
    assert norms is not None
    assert norms.shape == (4,)


def test_your_own_suite_loads(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(block("toml", 'title = "Mine"'))
    assert len(suite.load(str(path)).cells(list(available()))) == 12


def test_every_implementation_is_in_the_table():
    table = README.partition("| name | modules | norms |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", table, flags=re.M)
    assert dict(rows) == {name: load(name).MODULES for name in [*available(), *ablations()]}


def test_only_make_targets_that_exist_are_named_and_all_are_listed():
    targets = set(re.findall(r"^([a-z-]+):", (Path(__file__).parents[1] / "Makefile").read_text(), flags=re.M))
    assert set(re.findall(r"`?make ([a-z-]+)", README)) <= targets
    rows = README.partition("| target of `make` |")[2].partition("\n\n")[0]
    listed = re.findall(r"`([a-z-]+)`", " ".join(re.findall(r"^\| (`[^|]*)\|", rows, flags=re.M)))
    assert sorted(listed) == sorted(targets - {"help", "clean"})


def test_the_rules_of_a_gate_are_valid(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text(block("toml", "[tool.dpbench.gate]"))
    found = rules(path)
    assert found.suite == ["ci"]
    assert found.limit(Cell("mine.py", Workload(model="m", batch=4)), "flops") == 0.1
    assert found.limit(Cell("mine.py", Workload(model="m", batch=8)), "flops") == 0.0


def test_the_workflow_is_the_one_that_init_writes(tmp_path):
    written = iter(scaffold(tmp_path, implementation="mine.py")[WORKFLOWS / "dpbench.yml"].splitlines())
    shown = [line for line in block("yaml", "      - uses").splitlines() if line != "..."]
    assert len(shown) == 5
    assert all(line in written for line in shown), "in this order"


def test_only_commands_that_exist_are_named():
    known = list(typer.main.get_command(app).commands)
    assert set(re.findall(r"(?:`|\$ )dpbench ([a-z]+)", README)) <= set(known)


def test_your_own_paper_and_its_suite_fit_each_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, begins in (
        ("papers/mine.toml", 'id = "mine2026"'),
        ("suites/mlp.toml", '[axes]\nimplementation = ["nonprivate"'),
    ):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(block("toml", begins))
    (figure,) = papers.read(tmp_path / "papers/mine.toml").figure
    assert figure.numbers == 3
    assert {point.here.workload.batch for point in points(figure, None)} == {8}


def test_every_picture_that_is_shown_is_there():
    shown = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)
    assert len(shown) >= 2
    assert all((Path(__file__).parents[1] / picture).is_file() for picture in shown)
