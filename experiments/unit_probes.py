"""Kernels of one block that use a unit of Hopper once: a box of a tensor map is loaded or stored, or a
warpgroup starts one product. What a profiler counts of them says whether the CPU machine's models are right.

`unit_probes()` gives them, to be packed for sm_90a in place of `counter_probes.probes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterator

import numpy as np
from counter_probes import Probe

from tir_schedules.model.kernel import Kernel
from tir_schedules.model.launch import TensorMap

ROWS = COLUMNS = 256
THREADS = 128
SHARED_BYTES = 64 << 10
BOXES = {
    "64x64 under 128": ((64, 64), 128),
    "256x64 under 128": ((256, 64), 128),
    "64x32 under 64": ((64, 32), 64),
    "64x16 under 32": ((64, 16), 32),
    "64x64 plain": ((64, 64), 0),
    "8x8 plain": ((8, 8), 0),
}
"""Name -> rows and columns of a box of halves, and its swizzle."""
PLACES = {
    "aligned": (0, 0),
    "16 bytes along": (0, 8),
    "over the corner": (-8, -8),
    "over the end": (224, 240),
}
"""Name -> row and column of a box; a box of 64 rows lies partly outside in the last two. A store must
not begin before the tensor: a GPU ends the kernel."""
BOX = """\
#include <cuda.h>
// One box of a tensor map, and what the threads then read of it.
extern "C" __global__ void probe(const __grid_constant__ CUtensorMap %(array)s_map, unsigned *Y) {
    extern __shared__ __align__(1024) unsigned char tile[];
    __shared__ unsigned long long arrived;
    const unsigned target = (unsigned)__cvta_generic_to_shared(tile);
    const unsigned barrier = (unsigned)__cvta_generic_to_shared(&arrived);
%(access)s
}
"""
LOAD = """\
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%%0], 1;" :: "r"(barrier) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%0], %%1;"
                     :: "r"(barrier), "r"(%(bytes)d) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%%0], [%%1, {%%2, %%3}], [%%4];"
                     :: "r"(target), "l"(&X_map), "r"(%(column)d), "r"(%(row)d), "r"(barrier) : "memory");
    }
    unsigned over;
    do
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%%1], 0;"
                     " selp.u32 %%0, 1, 0, p; }" : "=r"(over) : "r"(barrier) : "memory");
    while (!over);
    if (threadIdx.x < 32) Y[threadIdx.x] = reinterpret_cast<unsigned *>(tile)[threadIdx.x];"""
STORE = """\
    for (int i = threadIdx.x; i < %(bytes)d / 4; i += 128) reinterpret_cast<unsigned *>(tile)[i] = i;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%%0, {%%1, %%2}], [%%3];"
                     :: "l"(&Y_map), "r"(%(column)d), "r"(%(row)d), "r"(target) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }"""
PRODUCT = """\
// %(count)d products of a warpgroup, of 64 rows of A and %(columns)d of B, 16 deep.
extern "C" __global__ void __launch_bounds__(128) probe(const unsigned *X, float *Y) {
    extern __shared__ __align__(1024) unsigned char tile[];
    for (int i = threadIdx.x; i < %(bytes)d / 4; i += 128) reinterpret_cast<unsigned *>(tile)[i] = X[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned long long base = (unsigned)__cvta_generic_to_shared(tile) >> 4;
    const unsigned long long left = base | %(layout)s, right = (base + 512) | %(layout)s;
    float d[%(sums)d] = {};
    const unsigned a = threadIdx.x;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int n = 0; n < %(count)d; ++n)
        asm volatile("wgmma.mma_async.sync.aligned.m64n%(columns)dk16.f32.f16.f16 {%(names)s}, %(factors)s"
                     : %(results)s : "l"(left), "l"(right), "r"(a) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    float sum = 0;
    for (int i = 0; i < %(sums)d; ++i) sum += d[i];
    Y[threadIdx.x] = sum;
}
"""
LAYOUTS = {"under 128": "(1ull << 62 | 64ull << 32 | 1ull << 16)", "plain": "(16ull << 32 | 8ull << 16)"}
"""Swizzle -> the rest of a descriptor."""


@dataclass(frozen=True)
class UnitProbe(Probe):
    """One launch. given: its arguments; Y is its output."""

    given: dict[str, np.ndarray] = field(default_factory=dict)

    def arguments(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self.given.items()}


def boxes(arch: str) -> Iterator[tuple[str, Kernel, dict[str, np.ndarray]]]:
    numbers = np.arange(ROWS * COLUMNS, dtype=np.float16).reshape(ROWS, COLUMNS)
    for size, (box, swizzle) in BOXES.items():
        for place, (row, column) in PLACES.items():
            for verb, access, array in (("load", LOAD, "X"), ("store", STORE, "Y")):
                if verb == "store" and min(row, column) < 0:
                    continue
                facts = {"bytes": box[0] * box[1] * 2, "row": row, "column": column}
                seen = TensorMap(
                    f"{array}_map", array, "float16", (ROWS, COLUMNS), (COLUMNS * 2,), box, swizzle
                )
                given = {
                    "X": numbers,
                    "Y": np.zeros_like(numbers) if array == "Y" else np.zeros(32, np.uint32),
                }
                name = f"{verb} of {size}, {place}"
                yield (
                    name,
                    kernel_of(name, BOX % {"array": array, "access": access % facts}, arch, seen),
                    given,
                )


def products(arch: str) -> Iterator[tuple[str, Kernel, dict[str, np.ndarray]]]:
    for columns in (8, 64, 128, 256):
        for layout, rest in LAYOUTS.items():
            for count in (1, 16):
                for left in ("shared", "registers") if layout != "plain" else ("shared",):
                    sums = columns // 2
                    factors = f"{'%%%d' % sums}, {'%%%d' % (sums + 1)}, 1, 1, 1, 0, 0;"
                    if left == "registers":
                        register = "%%%d" % (sums + 2)
                        factors = f"{{{', '.join([register] * 4)}}}, {'%%%d' % (sums + 1)}, 1, 1, 1, 0;"
                    facts = {
                        "columns": columns,
                        "count": count,
                        "sums": sums,
                        "bytes": 8192 + max(columns, 8) * 128,
                        "layout": rest,
                        "names": ", ".join(f"%{k}" for k in range(sums)),
                        "factors": factors,
                        "results": ", ".join(f'"+f"(d[{k}])' for k in range(sums)),
                    }
                    name = f"wgmma n{columns} x{count}, {layout}, A in {left}"
                    given = {"X": np.zeros(16384, np.uint32), "Y": np.zeros(THREADS, np.float32)}
                    yield name, kernel_of(name, PRODUCT % facts, arch), given


def kernel_of(name: str, source: str, arch: str, seen: TensorMap | None = None) -> Kernel:
    params = ("X", "Y") if seen is None else (seen.name, "Y")
    return Kernel(
        f"probe {name}", source, "probe", params, (1, 1, 1), (THREADS, 1, 1), arch, SHARED_BYTES,
        maps=(seen,) if seen else (),
    )  # fmt: skip


def unit_probes(arch: str) -> list[Probe]:
    nothing = np.zeros(0, int)
    return [
        UnitProbe(name, kernel, nothing, nothing, given)
        for made in (boxes(arch), products(arch))
        for name, kernel, given in made
    ]
