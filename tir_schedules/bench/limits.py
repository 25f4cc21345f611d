"""What the GPU at hand can do at best: bytes copied per second, and fp32 operations per second."""

from __future__ import annotations

import statistics
import time
from typing import Any

from tir_schedules.bench.sampling import Policy
from tir_schedules.files import Json
from tir_schedules.machines.gpu import GpuMachine
from tir_schedules.model.gpus import known_sm

COPIED = 2 << 30
"""Bytes of the array that is copied, unless that is more than a quarter of the memory."""

COPIES = 9


def copy_bandwidth(machine: GpuMachine, policy: Policy) -> Json:
    """The row of a copy from device memory to device memory: bytes read and bytes written."""
    count = max(1, min(COPIED, machine.free_bytes // 4) // 4)
    source = machine.xp.arange(count, dtype="int32")
    target = machine.xp.empty_like(source)

    def copy(stream: Any) -> None:
        machine.copy(target, source, stream)

    samples = []
    for _ in range(COPIES + 1):
        time.sleep(policy.pause)
        samples.append(round(machine.seconds(copy, before=copy) * 1e6, 3))
    rate = 2 * source.nbytes / statistics.median(samples[1:]) / 1e3
    return {
        "name": "copy bandwidth",
        "rate": round(rate, 1),
        "unit": "GB/s",
        "samples_us": samples[1:],
        "bytes": 2 * source.nbytes,
    }


def fp32_peak(device: Json, sm_mhz: int | None) -> Json | None:
    """The row of fp32 multiply-adds on all lanes at the clock seen; None for an unknown clock or
    architecture.

    device: has "arch" and "multiprocessors". What tensor cores can do does not follow from such facts.
    """
    sm = known_sm(device["arch"])
    if not (sm and sm_mhz):
        return None
    count, lanes = device["multiprocessors"], sm.lanes
    how = f"{count} SMs x {lanes} lanes x 2 operations x {sm_mhz} MHz"
    return {
        "name": "fp32 peak",
        "rate": round(count * lanes * 2 * sm_mhz / 1e6, 2),
        "unit": "TFLOPS",
        "sm_mhz": sm_mhz,
        "how": how,
    }
