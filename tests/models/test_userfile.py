import pytest
import torch

from dpbench.errors import DpbenchError
from dpbench.models import build
from dpbench.records import Workload

HEAD = """
import torch
from torch.nn import functional as F

def losses(model, batch):
    return F.cross_entropy(model(batch["x"]), batch["y"], reduction="none")
"""


@pytest.fixture
def made(tmp_path):
    def make(body, name="build", **axes):
        path = tmp_path / "mine.py"
        path.write_text(HEAD + body)
        return build(Workload(model=f"{path}:{name}", batch=2, **axes))

    return make


def test_batches_may_be_a_function_and_the_axes_arrive(made):
    task = made(
        """
def build(workload):
    def batches(size, seed):
        g = torch.Generator().manual_seed(seed)
        return {"x": torch.randn(size, 3, generator=g), "y": torch.zeros(size, dtype=torch.long)}
    return torch.nn.Linear(3, workload.classes), losses, batches
""",
        classes=6,
    )
    assert task.model.out_features == 6
    assert task.losses(task.model, task.batches(4, 0)).shape == (4,)
    assert task.source.startswith("build in ")


@pytest.mark.parametrize(("size", "rows"), [(0, []), (2, [0, 1]), (7, [0, 1, 2, 0, 1, 2, 0])])
def test_one_concrete_batch_is_repeated_where_it_has_too_few_rows(made, size, rows):
    task = made("""
def build(workload):
    batch = {"x": torch.arange(6.0).view(3, 2), "y": torch.zeros(3, dtype=torch.long)}
    return torch.nn.Linear(2, 2), losses, batch
""")
    assert torch.equal(task.batches(size, 0)["x"], torch.arange(6.0).view(3, 2)[rows])


def test_weights_are_seeded(made):
    body = "def build(workload):\n    return torch.nn.Linear(2, 2), losses, {'x': torch.zeros(1, 2)}\n"
    assert torch.equal(made(body).model.weight, made(body).model.weight)
    assert not torch.equal(made(body).model.weight, made(body, seed=1).model.weight)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", r"has no function build\(workload\); it must return \(model, losses, batches\)"),
        ("def build(workload): return 3", r"returned int; expected \(model, losses, batches\)"),
        ("def build(workload): return 1, losses, {}", r"returned \(int, function, dict\); expected \(nn.Module"),
        ("def build(workload): return torch.nn.Linear(1, 1), 2, {}", r"returned \(Linear, int, dict\); expected"),
        ("def build(workload): return 1 / 0", "raised ZeroDivisionError: division by zero"),
        ("def build(workload): return torch.nn.Linear(1, 1), losses, {'x': torch.zeros(0, 1)}", "has no rows"),
        ("def build(workload): return torch.nn.Linear(1, 1), losses, {}", "the batch holds no tensor"),
        ("import nowhere_to_be_found", "could not be imported: ModuleNotFoundError"),
    ],
)
def test_a_mistake_is_said(made, body, message):
    with pytest.raises(DpbenchError, match=message):
        made(body)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DpbenchError, match=r"no file .*gone.py; expected path/to/file.py:build"):
        build(Workload(model=f"{tmp_path}/gone.py:build", batch=1))


def test_a_missing_function_name_is_asked_for():
    with pytest.raises(DpbenchError, match="names no function; expected path/to/file.py:build"):
        build(Workload(model="mine.py", batch=1))


def test_a_file_may_define_dataclasses(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n" + HEAD + "@dataclass\nclass Widths:\n    inner: int = 2\n\n"
        "def build(workload):\n    return torch.nn.Linear(Widths().inner, 2), losses, {'x': torch.zeros(1, 2)}\n"
    )
    assert build(Workload(model=f"{path}:build", batch=1)).parameters == 6


def test_options_are_refused_instead_of_being_dropped(tmp_path):
    with pytest.raises(DpbenchError, match="takes no options; got width"):
        build(Workload(model=f"{tmp_path}/mine.py:build(width=3)", batch=1))
