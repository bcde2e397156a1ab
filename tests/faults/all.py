"""The faults, in the order of the table."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

NAMES = (
    "parent_killed",
    "worker_killed",
    "server_killed",
    "worker_stopped",
    "server_stopped",
    "worker_rubbish",
    "worker_hungry",
    "signalled",
    "two_runs",
    "disk_full",
    "nobody_listens",
    "temporary_full",
    "file_cut",
    "file_flipped",
)
FAULTS: dict[str, ModuleType] = {name: import_module(f"tests.faults.{name}") for name in NAMES}
