"""The roofline of a step on the device that runs it, where the speeds of that are known."""

from __future__ import annotations

import torch

from dpbench.cards import Card, calibrated_name, card, of_device
from dpbench.complexity.roofline import seconds
from dpbench.complexity.trace import Trace
from dpbench.errors import DpbenchError
from dpbench.precision import check_device
from dpbench.records import Roofline, Workload


def here(device: str) -> Card | None:
    """The card that a device of this machine is: as it was calibrated, else with the peaks of its maker.

    None where neither is known, and where a CPU was calibrated with another number of threads than torch has now.
    """
    where = check_device(device)
    try:
        calibrated = card(calibrated_name(where.type))
    except DpbenchError:
        calibrated = None
    if where.type == "cpu":
        return calibrated if calibrated and calibrated.threads == torch.get_num_threads() else None
    name = torch.cuda.get_device_name(where)
    return calibrated if calibrated and name in calibrated.torch_names else of_device(name)


def roofline(trace: Trace, workload: Workload) -> Roofline | None:
    """Seconds of the step that ``trace`` is of, on the workload's device.

    None where the device is no known card or lacks a precision, and of a logical batch, of which a trace is a part.
    """
    found = None if workload.logical_batch else here(workload.device)
    if found is None:
        return None
    try:
        of = seconds(trace, found, workload.precision)
    except DpbenchError:
        return None
    return Roofline(found.name, of.low, of.expected, of.high)
