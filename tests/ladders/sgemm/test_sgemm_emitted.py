"""Facts of the CUDA that each rung emits, and of its twin: launch, shared memory, barriers, vector accesses,
registers' home.

The recorded facts are in emitted.json. To rewrite them:
`pytest tests/ladders/sgemm/test_sgemm_emitted.py --update-golden`.
"""

import re
from pathlib import Path

import pytest
from layers import layers
from sgemm_cases import ARCH, BASE, EVERY, RUNGS, SHARED, WHOLE

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin

RECORDED = Path(__file__).parent / "emitted.json"
each_rung = layers("rung", BASE, RUNGS)

BARRIER = re.compile(r"^\s+bar\.sync|^\s+barrier\.sync", re.M)
NOT_OF_A_LOOP = re.compile(r"^ *#pragma unroll.*\n(?! *for )", re.M)
ACCESS = re.compile(r"^\s+(?:@\S+\s+)?((?:ld|st)\.(?:global|shared)\S*)", re.M)


def facts(kernel):
    """What a reader of the article would look for. Widths are the most bytes per thread of an access in the
    PTX.

    (nvcc is not wholly deterministic: now and then it merges two narrower loads of one kernel differently.)
    """
    binary = compile_kernel(kernel)
    accesses = {}
    for access in ACCESS.findall(binary.ptx):
        name = (
            f"{'load' if access.startswith('ld') else 'store'} {'shared' if 'shared' in access else 'global'}"
        )
        width = 4 * (4 if ".v4" in access else 2 if ".v2" in access else 1)
        accesses[name] = max(width, accesses.get(name, 0))
    return {
        "grid": kernel.grid,
        "block": kernel.block,
        "shared_bytes": binary.resources.shared + kernel.dynamic_shared,
        "barriers": kernel.source.count("__syncthreads()"),
        "barriers_in_ptx": len(BARRIER.findall(binary.ptx)),
        "widest_access": dict(sorted(accesses.items())),
        "spills": binary.resources.spill_stores + binary.resources.spill_loads,
        "stack": binary.resources.stack,
    }


@layers("rung, gemm", SHARED, EVERY)
def test_emitted_cuda_is_as_recorded(rung, gemm, golden):
    kernel = lower(rung, gemm, ARCH)
    golden(RECORDED, f"{rung.id} {gemm}", facts(kernel))
    assert not NOT_OF_A_LOOP.search(kernel.source)


@each_rung
def test_twin_is_as_recorded(rung, golden):
    golden(RECORDED, f"{rung.id} twin", facts(load_twin(rung, WHOLE, ARCH)))


@each_rung
@pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])
def test_accumulators_stay_in_registers(rung, make):
    resources = compile_kernel(make(rung, WHOLE, ARCH)).resources
    assert (resources.stack, resources.spill_stores, resources.spill_loads) == (0, 0, 0)


@each_rung
def test_schedule_and_twin_launch_the_same_block_with_the_same_shared_memory(rung):
    tir, twin = (make(rung, WHOLE, ARCH) for make in (lower, load_twin))
    assert (tir.grid, tir.block) == (twin.grid, twin.block)
    assert compile_kernel(tir).resources.shared == compile_kernel(twin).resources.shared
    assert tir.dynamic_shared == twin.dynamic_shared
