"""What is read of a GPU's clock, power and reasons to slow down."""

import sys
from types import SimpleNamespace

from tir_schedules.bench.clocks import Monitor, NoMonitor, Reading, names_of, open_monitor, summary


class NVMLError(Exception):
    pass


def nvml(**functions):
    def refuse(*_):
        raise NVMLError("not supported")

    device = ("HandleByPciBusId", "HandleByIndex", "ClockInfo", "PowerUsage", "CurrentClocksThrottleReasons")
    defaults = dict.fromkeys(["nvmlInit", *(f"nvmlDeviceGet{name}" for name in device)], refuse)
    return SimpleNamespace(NVMLError=NVMLError, NVML_CLOCK_SM=1, **defaults | functions)


def test_idle_and_chosen_clocks_are_no_reason_and_those_that_matter_are_named():
    assert names_of(0x1 | 0x2 | 0x100) == ()
    assert names_of(0x4 | 0x1) == ("power cap",)
    assert names_of(0x20 | 0x40 | 0x80) == ("software thermal", "hardware thermal", "hardware power brake")


def test_a_reading_has_what_nvml_tells_and_none_for_the_rest():
    told = nvml(
        nvmlDeviceGetClockInfo=lambda handle, which: 1980,
        nvmlDeviceGetCurrentClocksEventReasons=lambda handle: 0x4,
    )
    assert Monitor(told, "handle").read() == Reading(1980, None, ("power cap",))


def test_an_older_pynvml_has_another_name_for_the_reasons():
    told = nvml(
        nvmlDeviceGetPowerUsage=lambda handle: 123456,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0,
    )
    assert Monitor(told, "handle").read() == Reading(None, 123.456, ())


def test_summary_of_readings():
    slowest = Reading(1500, 699.96, ("power cap",))
    readings = [
        Reading(1980, 300.0, ()),
        None,
        slowest,
        Reading(1700, 400.0, ("hardware thermal", "power cap")),
    ]
    assert summary(readings) == {
        "sm_mhz": [1500, 1980],
        "power_w": 700.0,
        "throttled": ["power cap", "hardware thermal"],
    }


def test_summary_leaves_out_what_nvml_never_told():
    assert summary([None, None]) == {}
    assert summary([Reading(1980, None, ())]) == {"sm_mhz": [1980, 1980], "throttled": []}


def test_no_pynvml_or_no_driver_gives_no_readings(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert isinstance(open_monitor("0000:00:00.0"), NoMonitor) and open_monitor("0000:00:00.0").read() is None
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    assert isinstance(open_monitor("0000:00:00.0"), NoMonitor)


def test_a_bus_address_that_nvml_does_not_know_means_the_first_gpu(monkeypatch):
    known = nvml(nvmlInit=lambda: None, nvmlDeviceGetHandleByIndex=lambda index: f"handle {index}")
    monkeypatch.setitem(sys.modules, "pynvml", known)
    assert open_monitor("0000:00:00.0").handle == "handle 0"
    known.nvmlDeviceGetHandleByPciBusId = lambda address: address
    assert open_monitor("0000:17:00.0").handle == "0000:17:00.0"
