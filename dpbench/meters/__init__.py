"""Meters: what a step costs in seconds and bytes, one file for each kind of device."""

from __future__ import annotations

import torch

from dpbench.meters.meter import Action, Meter, Sample

__all__ = ["Action", "Meter", "Sample", "meter_for"]


def meter_for(device: torch.device) -> Meter:
    """The meter of a device."""
    if device.type == "cuda":
        from dpbench.meters.cuda import CudaMeter

        return CudaMeter(device)
    from dpbench.meters.cpu import CpuMeter

    return CpuMeter()
