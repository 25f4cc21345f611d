"""Kernels of one warp that access memory at addresses read from an array: what one access costs, pattern by
pattern.

`probes()` gives them with their patterns; `counter_pack.py` packs them, and `counters_on_gpu.py` holds the
CPU machine's counters against those of Nsight Compute. Recorded results are what
tests/machines/test_counters.py expects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator

import numpy as np

from tir_schedules.model.kernel import Kernel

SHARED_BYTES = 16384
LANES = np.arange(32)

SOURCE = """\
// One access to shared memory per lane, at the byte offset that `offsets` holds; a negative one: none.
// A second offset per lane says where cp.async copies from.
__device__ unsigned address(const unsigned char* tile, int offset) {
    return (unsigned)__cvta_generic_to_shared(tile + offset);
}
extern "C" __global__ void probe(const int* __restrict__ offsets, const uint4* __restrict__ X,
                                 unsigned* __restrict__ Y) {
    __shared__ __align__(128) unsigned char tile[%(bytes)d];
    const int lane = threadIdx.x, offset = offsets[lane];
    const char* source = reinterpret_cast<const char*>(X) + offsets[lane + 32];
%(fill)s
    uint4 value = make_uint4(lane, lane, lane, lane);
%(access)s
    Y[lane] = value.x ^ value.y ^ value.z ^ value.w;
}
"""
FILL = """\
    for (int i = lane; i < %(bytes)d / 16; i += 32)
        reinterpret_cast<uint4*>(tile)[i] = make_uint4(i, i, i, i);
    __syncthreads();""" % {"bytes": SHARED_BYTES}


@dataclass(frozen=True)
class Probe:
    """One launch: a kernel, the byte offset of each lane's access, -1 for lanes that make none, and of its
    source."""

    name: str
    kernel: Kernel
    offsets: np.ndarray
    sources: np.ndarray

    def arguments(self) -> dict[str, np.ndarray]:
        return {
            "offsets": np.concatenate([self.offsets, self.sources]).astype(np.int32),
            "X": np.arange(SHARED_BYTES // 4, dtype=np.uint32),
            "Y": np.zeros(32, np.uint32),
        }


def accesses() -> dict[str, tuple[int, bool, str]]:
    """Name of an access -> bytes per lane, whether it reads shared memory, and its statement."""
    found = {}
    for size, suffix, registers in ((4, "", "%0"), (8, ".v2", "{%0, %1}"), (16, ".v4", "{%0, %1, %2, %3}")):
        count = size // 4
        names = ["value.x", "value.y", "value.z", "value.w"][:count]
        results = ", ".join(f'"=r"({name})' for name in names)
        values = ", ".join(f'"r"({name})' for name in names)
        inputs = registers
        for k in reversed(range(count)):
            inputs = inputs.replace(f"%{k}", f"%{k + 1}")
        load = (
            f'asm volatile("ld.shared{suffix}.u32 {registers}, [%{count}];" : {results} : "r"(address(tile,'
            " offset)));"
        )
        store = (
            f'asm volatile("st.shared{suffix}.u32 [%0], {inputs};" :: "r"(address(tile, offset)), {values});'
        )
        copy = (
            f'asm volatile("cp.async.{"cg" if size == 16 else "ca"}.shared.global [%0], [%1], {size};" ::'
            ' "r"(address(tile, offset)), "l"(source));'
            ' asm volatile("cp.async.wait_all;");'
        )
        found[f"load_{size}"] = size, True, load
        found[f"store_{size}"] = size, False, store
        found[f"cp_async_{size}"] = size, False, copy
    return found


def patterns(size: int) -> Iterator[tuple[str, np.ndarray]]:
    """Byte offsets by name, for accesses of `size` bytes per lane."""
    most = SHARED_BYTES // size
    for stride in (1, 2, 3, 4, 5, 8, 16, 17, 32, 33):
        yield f"stride {stride}", LANES * stride % most * size
    yield "one address", LANES * 0
    yield "lanes t and t^1 agree", LANES // 2 * size
    yield "lanes t and t^2 agree", (LANES & 1 | LANES >> 2 << 1) * size
    yield "lanes t and t^4 agree", (LANES & 3 | LANES >> 3 << 2) * size
    yield "t and t^1 agree, 128 bytes apart", LANES // 2 * 128
    yield "8 columns", LANES % 8 * size
    yield "4 rows of 128 words", LANES // 8 * 512
    yield "row of a padded tile", LANES // 4 * 144 + LANES % 4 * size
    yield "rows of four, a fifth apart", (LANES // 4 * 5 + LANES % 4) * size
    yield "rows of four, 512 bytes apart", LANES // 4 * 512 + LANES % 4 * size
    yield "rows of four, permuted by xor", (LANES ^ LANES // 8 % 4) * size
    yield "shuffled", np.random.default_rng(3).permutation(32) * size
    yield "reversed", (31 - LANES) * size
    yield "even lanes", np.where(LANES % 2 == 0, LANES * size, -1)
    yield "lanes below 5, 128 bytes apart", np.where(LANES < 5, LANES * 128, -1)
    yield "lanes above 20, one address", np.where(LANES > 20, 64, -1)
    for seed in range(3):
        yield f"random {seed}", np.random.default_rng(seed).integers(0, most, 32) * size


def copies(size: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Targets and sources of cp.async of `size` bytes, neither a function of the other."""
    places = dict(patterns(size))
    rows = "rows of four, 512 bytes apart"
    for target in (
        "stride 1",
        "stride 2",
        "lanes t and t^1 agree",
        "row of a padded tile",
        "random 0",
        "rows of four, a fifth apart",
        "shuffled",
    ):
        for source in (
            "stride 2",
            "stride 4",
            "one address",
            "lanes t and t^1 agree",
            "reversed",
            "random 1",
            rows,
        ):
            yield f"to {target}, from {source}", places[target], places[source]
    yield f"to permuted rows, from {rows}", places["rows of four, permuted by xor"], places[rows]


def guarded(statement: str, reads: bool) -> tuple[str, str]:
    return (FILL if reads else ""), f"    if (offset >= 0) {{ {statement} }}"


def matrix_accesses() -> Iterator[tuple[str, str, np.ndarray]]:
    """ldmatrix: name, statement, and row addresses for row strides that conflict and that do not."""
    forms = {1: "{%0}", 2: "{%0, %1}", 4: "{%0, %1, %2, %3}"}
    for count, registers in forms.items():
        names = ["value.x", "value.y", "value.z", "value.w"][:count]
        results = ", ".join(f'"=r"({name})' for name in names)
        statement = (
            f'asm volatile("ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {registers}, [%{count}];"'
            f' : {results} : "r"(address(tile, offset)));'
        )
        for stride in (16, 32, 64, 80, 128, 144, 256):
            yield f"ldmatrix x{count}, rows {stride} bytes apart", statement, LANES * stride


def probes(arch: str) -> list[Probe]:
    found = []

    def add(name: str, entry: str, code: tuple[str, str], offsets: np.ndarray, sources: np.ndarray) -> None:
        fill, access = code
        source = SOURCE % {"bytes": SHARED_BYTES, "fill": fill, "access": access}
        kernel = Kernel(f"probe {entry}", source, "probe", ("offsets", "X", "Y"), (1, 1, 1), (32, 1, 1), arch)
        found.append(Probe(name, kernel, offsets, sources))

    for entry, (size, reads, statement) in accesses().items():
        for name, offsets in patterns(size):
            add(f"{entry}, {name}", entry, guarded(statement, reads), offsets, LANES * size)
        for name, offsets, sources in copies(size) if entry.startswith("cp_async") else ():
            add(f"{entry}, {name}", entry, guarded(statement, reads), offsets, sources)
    for name, statement, offsets in matrix_accesses():
        add(name, name.split(",")[0], guarded(statement, True), offsets, LANES)
    return found
