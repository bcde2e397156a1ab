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


def test_options_arrive_as_keywords(made):
    body = """
def build(workload, width):
    return torch.nn.Linear(2, width), losses, {"x": torch.zeros(1, 2), "y": torch.zeros(1).long()}
"""
    assert made(body, "build(width=9)").model.out_features == 9
    with pytest.raises(DpbenchError, match=r"raised TypeError: .*missing 1 required positional argument: 'width'"):
        made(body)


def test_the_model_stays_in_the_modes_it_comes_in(made):
    task = made("""
def build(workload):
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3).eval())
    return model, losses, {"x": torch.zeros(1, 2), "y": torch.zeros(1).long()}
""")
    assert [module.training for module in task.model.modules()] == [True, True, False]


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("F.cross_entropy(m(b['x']), b['y'])", r"returned shape \(\); expected one loss per example, shape \(2,\)"),
        ("m(b['x'])", r"returned shape \(2, 3\); expected one loss per example.*reduction=\"none\""),
        ("3.0", "returned float; expected one loss per example"),
        ("m(b['x']).sum(1).detach()", "do not depend on a trainable parameter; expected losses"),
    ],
)
def test_losses_that_are_none_are_said(made, loss, message):
    with pytest.raises(DpbenchError, match=message):
        made(f"""
def build(workload):
    data = {{"x": torch.zeros(3, 2), "y": torch.zeros(3).long()}}
    return torch.nn.Linear(2, 3), lambda m, b: {loss}, data
""")


def test_weights_are_seeded(made):
    data = "{'x': torch.zeros(1, 2), 'y': torch.zeros(1).long()}"
    body = f"def build(workload):\n    return torch.nn.Linear(2, 2), losses, {data}\n"
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
    with pytest.raises(DpbenchError, match=r"names no function; expected path/to/file.py:build"):
        build(Workload(model="mine.py", batch=1))


def test_a_file_may_define_dataclasses(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        + HEAD
        + "@dataclass\nclass Widths:\n    inner: int = 2\n\n"
        "def build(workload):\n"
        "    data = {'x': torch.zeros(1, 2), 'y': torch.zeros(1).long()}\n"
        "    return torch.nn.Linear(Widths().inner, 2), losses, data\n"
    )
    assert build(Workload(model=f"{path}:build", batch=1)).parameters == 6
