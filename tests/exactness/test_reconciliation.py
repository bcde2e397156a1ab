"""Analytic costs against traces, to the last FLOP, for every implementation on every small network."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpbench.complexity.predict import predict
from dpbench.registry import ablations, available
from tests.models.tiny import TINY

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("kind", TINY)
def test_every_flop_is_explained_by_module_and_parameter(kind, batch):
    for found in predict(replace(TINY[kind], batch=batch), [*available(), *ablations()]):
        assert found.trace is not None, (found.implementation, found.reason)
        assert not found.unexplained, (found.implementation, found.unexplained)
        # Blocks of the synthetic transformer have no module of their own for attention.
        assert all("att" in place.lower() or place.startswith("blocks.") for place in found.trace.others)
