"""The suites that come with dpbench: each can be read, and each of its models can be built."""

from pathlib import Path

import pytest

from dpbench import suite
from dpbench.models.spec import parse
from dpbench.registry import available
from dpbench.sweep import cells_of

SUITES = sorted((Path(__file__).parents[1] / "suites").glob("*.toml"))


@pytest.mark.parametrize("path", SUITES, ids=lambda p: p.stem)
def test_it_is_valid_and_says_what_it_is_for(path):
    found = suite.load(path)
    assert found.title != path.stem
    cells = cells_of(found)
    assert cells
    for cell in cells:
        parse(cell.workload.model)


def test_quickstart_has_every_implementation_on_three_real_networks_over_batch_and_sequence():
    cells = cells_of(suite.load("quickstart"))
    real = {c.workload.model.partition("(")[0] for c in cells if not c.workload.model.startswith("synthetic")}
    assert len(real) >= 3
    assert {c.implementation for c in cells} == set(available())
    for model in {c.workload.model for c in cells}:
        own = [c.workload for c in cells if c.workload.model == model]
        assert len({w.batch for w in own}) >= 2
    assert len({c.workload.seq_len for c in cells if c.workload.seq_len}) >= 2
