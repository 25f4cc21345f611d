"""Facts of the CUDA and SASS of each rung and twin: copies, fragments, mma, barriers and waits, memory
and registers.

The recorded facts are in emitted.json. To rewrite them:
`pytest tests/ladders/hgemm/test_hgemm_emitted.py --update-golden`.
"""

import re
from itertools import cycle
from pathlib import Path

from kinds import (
    ARCH,
    CASES,
    LADDER,
    MAKERS,
    RAGGED,
    RUNGS,
    SHARED,
    WHOLE,
    both,
    kinds_of,
    other_kinds,
    workload,
)
from layers import every_pair, layers

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.sass import count_opcodes, disassemble, loop_with_most

RAGGED_ONES = [case for case in SHARED if case[1] != workload(WHOLE, kinds_of(case[0])[0])]
"""Of whole tiles it is recorded."""
RECORDED = Path(__file__).parent / "emitted.json"
ALIGNED = [(rung, kinds_of(rung)[0]) for rung in LADDER]
COPY = re.compile(r"cp\.async\.c[ag]\.shared\.global\S*\s+\[[^]]*\],\s*\[[^]]*\],\s*(\d+)")
WAIT = re.compile(r"cp\.async\.wait_group\s+(\d+)")
MAIN_LOOP = {
    "HMMA": "products",
    "LDSM": "fragment_loads",
    "LDGSTS": "copies",
    "BAR": "barriers",
    "LDGDEPBAR": "commits",
}


def facts(kernel):
    """Of the main loop, the one with most HMMA: instructions of each kind per 64 products, as a 64x64 warp
    tile has in 32 of K."""
    binary = compile_kernel(kernel)
    loop = count_opcodes(loop_with_most(disassemble(binary), "HMMA"))
    resources = binary.resources
    return {
        "grid": kernel.grid,
        "block": kernel.block,
        "dynamic_shared": kernel.dynamic_shared,
        "static_shared": resources.shared,
        "bytes_per_copy": sorted({int(width) for width in COPY.findall(binary.ptx)}),
        "wait_depths": sorted({int(depth) for depth in WAIT.findall(binary.ptx)}),
        "main_loop": {name: loop[opcode] * 64 / loop["HMMA"] for opcode, name in MAIN_LOOP.items()},
        "spills": resources.spill_stores + resources.spill_loads,
        "stack": resources.stack,
    }


def long_for(rung):
    """A shape with so many tiles along K that the loop over them is not unrolled: of a small tile, whose body
    is short, nvcc unrolls more of them."""
    return "256x256x6144" if rung.id == "hgemm/mma_multistage:64x64" else WHOLE


@layers("rung, kind", ALIGNED, [(rung, kind) for rung in RUNGS for kind in other_kinds(rung)])
@both
def test_emitted_code_is_as_recorded(rung, kind, make, golden):
    kernel = make(rung, workload(long_for(rung), kind), ARCH)
    golden(RECORDED, f"{kernel.label} {' '.join(kind)}", facts(kernel))


@layers(
    "rung, gemm, form",
    [(*case, form) for case, form in zip(RAGGED_ONES, cycle(MAKERS))],
    [(*case, form) for case in RAGGED_ONES for form in MAKERS]
    + [
        (rung, workload(WHOLE, kind), form)
        for rung, *kind, form in every_pair([(rung, *kind, form) for rung, kind in CASES for form in MAKERS])
    ],
)
def test_accumulators_and_fragments_stay_in_registers(rung, gemm, form):
    resources = compile_kernel(MAKERS[form](rung, gemm, ARCH)).resources
    assert (resources.stack, resources.spill_stores, resources.spill_loads) == (0, 0, 0)


def asynchronous(rung):
    """With one stage there is nothing to copy ahead."""
    return rung.min_arch >= 80 and vars(rung.config).get("stages") != 1


@layers(
    "rung, kind",
    [case for case in ALIGNED if asynchronous(case[0])],
    [(rung, ("nt", "float16")) for rung in RUNGS if asynchronous(rung)],
)
@both
def test_copies_are_asynchronous_on_ragged_tiles_too(rung, kind, make):
    """Where rows start on 16 bytes, what lies beyond the matrix is left out by predicated copies."""
    ptx = compile_kernel(make(rung, workload(RAGGED, kind), ARCH)).ptx
    assert set(COPY.findall(ptx)) == {"16"}
    assert not re.search(r"ld\.global\S*\.v4", ptx)
