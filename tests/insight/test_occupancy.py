"""Occupancy against figures worked out by hand from CUDA's rules, and against NVIDIA's own calculator."""

import random
import subprocess
from pathlib import Path

import pytest

from tir_schedules.compiler.toolchain import find_toolchain
from tir_schedules.errors import BadInput
from tir_schedules.model.gpus import SMS, occupancy


@pytest.mark.parametrize("arch, threads, registers, shared, blocks, limited", [
    ("sm_80", 256, 128, 0, 2, ["registers"]),  # 4096 a warp: 4 warps in each quarter of 16384
    ("sm_80", 32, 200, 0, 8, ["registers"]),  # 6400 a warp: 2 in each quarter, though 10 in all
    ("sm_86", 128, 33, 0, 12, ["warps", "registers"]),  # 1056 become 1280 a warp: 12 in each quarter
    ("sm_86", 128, 40, 24 << 10, 4, ["shared"]),  # with 1 KiB of the system's 25 KiB of 100
    ("sm_80", 128, 32, 82944, 2, ["shared"]),  # 82 KiB of 164, the system's among them
    ("sm_80", 128, 32, 82945, 1, ["shared"]),
    ("sm_75", 64, 32, 4096, 16, ["warps", "blocks", "shared"]),
    ("sm_75", 64, 32, 4097, 15, ["shared"]),  # 4352 bytes, in portions of 256
    ("sm_75", 1024, 32, 0, 1, ["warps"]),
    ("sm_90", 32, 16, 0, 32, ["blocks"]),
    ("sm_90a", 100, 32, 113 << 10, 2, ["shared"]),
    ("sm_89", 48, 16, 0, 24, ["warps", "blocks"]),  # half a warp is one
    ("sm_120", 384, 168, 0, 1, ["registers"]),  # 12 warps of 5376: 3 in each quarter
    ("sm_80", 1024, 72, 0, 0, ["registers"]),
    ("sm_80", 1056, 16, 0, 0, ["warps"]),
    ("sm_103", 256, 32, (227 << 10) + 1, 0, ["shared"]),
    ("sm_100", 256, 32, 227 << 10, 1, ["shared"]),
])  # fmt: skip
def test_occupancy_is_what_the_rules_say(arch, threads, registers, shared, blocks, limited):
    found = occupancy(arch, (threads, 1, 1), registers, shared)
    assert (found.blocks, sorted(found.limited_by)) == (blocks, sorted(limited))
    assert found.warps == blocks * -(-threads // 32) and found.share == found.warps / found.max_warps


def test_threads_of_all_axes_count():
    assert occupancy("sm_80", (32, 4, 2), 128, 0) == occupancy("sm_80", (256,), 128, 0)


MOST_SHARED = {
    "sm_75": 64,
    "sm_80": 163,
    "sm_86": 99,
    "sm_87": 163,
    "sm_89": 99,
    "sm_90": 227,
    "sm_100": 227,
    "sm_103": 227,
    "sm_110": 227,
    "sm_120": 99,
    "sm_121": 99,
}
"""KiB of a block."""


@pytest.mark.parametrize("arch, kib", MOST_SHARED.items())
def test_the_most_shared_memory_of_a_block(arch, kib):
    assert SMS[arch].shared_limit == kib << 10


def test_an_unknown_architecture_is_bad_input():
    with pytest.raises(BadInput, match="'sm_99' are not known; those of sm_75"):
        occupancy("sm_99", (32,), 16, 0)


CALCULATOR = r"""
#include <cstdio>
#include "cuda_occupancy.h"
int main() {
    int major, minor, warps, threads, registers;
    long shared_kib, reserved, bytes;
    while (scanf("%d %d %d %ld %ld %d %d %ld", &major, &minor, &warps, &shared_kib, &reserved,
                 &threads, &registers, &bytes) == 8) {
        cudaOccDeviceProp device;
        device.computeMajor = major;
        device.computeMinor = minor;
        device.maxThreadsPerBlock = 1024;
        device.warpSize = 32;
        device.maxThreadsPerMultiprocessor = warps * 32;
        device.regsPerBlock = device.regsPerMultiprocessor = 65536;
        device.numSms = 1;
        device.sharedMemPerBlock = 48 << 10;
        device.sharedMemPerMultiprocessor = shared_kib << 10;
        device.sharedMemPerBlockOptin = (shared_kib << 10) - reserved;
        device.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes function;
        function.maxThreadsPerBlock = 1024;
        function.numRegs = registers;
        function.sharedSizeBytes = 0;
        function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        function.maxDynamicSharedSizeBytes = device.sharedMemPerBlockOptin;
        cudaOccDeviceState state;
        state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
        cudaOccResult result;
        int error = cudaOccMaxActiveBlocksPerMultiprocessor(
            &result, &device, &function, &state, threads, bytes);
        printf("%d\n", error ? -error : result.activeBlocksPerMultiprocessor);
    }
}
"""


def test_occupancy_is_that_of_nvidias_calculator(tmp_path):
    """The header of the CUDA toolkit; it knows portions, blocks and quarters of each architecture, and is
    told the rest."""
    folder = next(
        (path.parent for path in Path(find_toolchain().nvcc).parents[1].rglob("cuda_occupancy.h")), None
    )
    if not folder:
        pytest.skip("this CUDA installation has no cuda_occupancy.h")
    (tmp_path / "calculator.cpp").write_text(CALCULATOR)
    subprocess.run(["g++", "-I", folder, "calculator.cpp", "-o", "calculator"], cwd=tmp_path, check=True)
    points, told, chance = [], [], random.Random(0)
    for arch, limit in SMS.items():
        major, minor = divmod(int(arch[3:]), 10)
        for _ in range(2000):
            threads, registers = (
                chance.choice([chance.randint(1, 1056), 32 * chance.randint(1, 32)]),
                chance.randint(1, 255),
            )
            shared = chance.choice(
                [0, chance.randint(0, 16 << 10), chance.randint(0, (limit.shared_kib + 1) << 10)]
            )
            points.append((arch, threads, registers, shared))
            told.append(
                f"{major} {minor} {limit.warps} {limit.shared_kib} {limit.reserved} {threads} {registers}"
                f" {shared}"
            )
    done = subprocess.run(
        [tmp_path / "calculator"], input="\n".join(told), capture_output=True, text=True, check=True
    )
    expected = list(map(int, done.stdout.split()))
    differing = [
        (point, blocks)
        for point, blocks in zip(points, expected)
        if occupancy(point[0], point[1:2], *point[2:]).blocks != blocks
    ]
    assert (
        not differing
        and len(expected) == len(points)
        and sum(blocks > 0 for blocks in expected) > len(points) / 4
    )
