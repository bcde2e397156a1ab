"""The card as ``dpbench calibrate`` measures it, beside the peaks that its maker publishes."""

from __future__ import annotations

import torch

from dpbench.calibration import calibrate
from dpbench.cards import Card, of_device
from tests.benchmarks.gpu_check.check import Check, Say, answer, could_not
from tests.benchmarks.gpu_check.driver import DEVICE

PART, ABOVE = "products and copy against the published peaks", 1.05
"""A little above one, as cards clock above the frequency that their peaks are published at."""


def speeds(say: Say) -> None:
    """None may be above: then something was not waited for."""
    expected = f"at most {ABOVE:g} of each"
    here = next(seen for seen in calibrate(DEVICE) if isinstance(seen, Card))
    measured = {**here.peaks, "bandwidth": here.bandwidth}
    published = of_device(torch.cuda.get_device_name(DEVICE))
    if published is None:
        say(could_not(PART, expected, "the card's peaks are not in devices.toml", **measured, launch=here.launch))
        return
    peaks = {**published.peaks, "bandwidth": published.bandwidth}
    shares = {name: measured[name] / peaks[name] for name in measured if name in peaks}
    got = ", ".join(f"{name} {share:.0%}" for name, share in shares.items()) + f", call {here.launch * 1e6:.1f} us"
    say(answer(PART, expected, got, max(shares.values()) <= ABOVE, **measured, launch=here.launch, shares=shares))


CHECKS = (Check("speeds", (PART,), 30.0, speeds),)
