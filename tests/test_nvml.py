import sys

import pytest

from dpbench import nvml
from tests.fake_nvml import FakeNvml, card, install, process

ALIKE = [card(uuid=f"GPU-{c}111") for c in "abc"]
DIFFERENT = [card("NVIDIA T4", "GPU-a111"), card("NVIDIA A100", "GPU-b111")]


def found(cards, device="cuda", **environ):
    handle = nvml.handle_of(FakeNvml(*cards), device, environ)
    return None if handle is None else handle["UUID"]


def test_without_a_driver_or_the_library_there_is_nothing(monkeypatch):
    fake = install(monkeypatch)
    monkeypatch.setattr(fake, "nvmlInit", lambda: (_ for _ in ()).throw(OSError("no driver")), raising=False)
    with nvml.opened() as library:
        assert library is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with nvml.opened() as library:
        assert library is None


def test_the_library_is_shut_whatever_happens(monkeypatch):
    fake = install(monkeypatch, card())
    with pytest.raises(ValueError, match="here"), nvml.opened() as library:
        assert library.nvmlDeviceGetCount() == fake.open == 1
        raise ValueError("here")
    assert fake.open == 0


@pytest.mark.parametrize(
    ("visible", "device", "uuid"),
    [
        (None, "cuda", "GPU-a111"),
        (None, "cuda:2", "GPU-c111"),
        (None, "cuda:3", None),
        (None, "cpu", None),
        ("2,0", "cuda:0", "GPU-c111"),
        ("2, 0", "cuda:1", "GPU-a111"),
        ("0,2,-1,1", "cuda:1", "GPU-c111"),
        ("0,2,-1,1", "cuda:2", None),
        ("GPU-b", "cuda", "GPU-b111"),
        ("GPU-c111,GPU-a", "cuda:1", "GPU-a111"),
        ("GPU-", "cuda", None),
        ("MIG-1,0", "cuda", None),
        ("", "cuda", None),
    ],
)
def test_torchs_index_is_found_through_what_is_visible(visible, device, uuid):
    """``0,2,-1,1`` is the example of CUDA's documentation; GPU- alone names no card uniquely."""
    assert found(ALIKE, device, **({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})) == uuid


def test_among_different_cards_an_index_is_certain_only_in_the_order_of_the_bus():
    assert found(DIFFERENT) is None
    assert found(DIFFERENT, CUDA_VISIBLE_DEVICES="1") is None
    assert found(DIFFERENT, CUDA_DEVICE_ORDER="PCI_BUS_ID") == "GPU-a111"
    assert found(DIFFERENT, CUDA_VISIBLE_DEVICES="GPU-b") == "GPU-b111"


def test_a_part_of_a_card_is_not_its_card():
    assert found([card(MigMode=[1, 1])]) is None


def test_a_reading_has_units_and_nulls_for_what_a_card_does_not_tell():
    library = FakeNvml()
    whole = nvml.read(library, card(ComputeRunningProcesses=[process(5)]))
    assert whole == nvml.Reading(1500, 6250, 50.5, 61, 0, (5,))
    nothing = dict.fromkeys(
        ("ClockInfo", "PowerUsage", "Temperature", "CurrentClocksEventReasons", "ComputeRunningProcesses")
    )
    assert nvml.read(library, card(**nothing)) == nvml.Reading(*[None] * 6)


def test_an_older_driver_is_asked_in_its_own_words():
    assert nvml.reasons(FakeNvml(), card(CurrentClocksEventReasons=None, CurrentClocksThrottleReasons=0x20)) == 0x20


def test_bits_are_those_of_the_library():
    pynvml = pytest.importorskip("pynvml")
    names = {
        "SwPowerCap": nvml.POWER_CAP,
        "GpuIdle": nvml.IDLE,
        **dict(
            zip(
                ("HwSlowdown", "SyncBoost", "SwThermalSlowdown", "HwThermalSlowdown", "HwPowerBrakeSlowdown"),
                nvml.THROTTLES,
                strict=True,
            )
        ),
    }
    assert names == {name: getattr(pynvml, f"nvmlClocksThrottleReason{name}") for name in names}
