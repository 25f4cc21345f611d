"""Cycles that a fence waits for stores, and cycles of each block of a chain. A block of a chain waits for the
block before it.

    python experiments/fences.py RESULT.json   # needs a GPU and CuPy; a few seconds

First, each lane of a warp stores 16 bytes several times, or adds them by `red`. Then the warp fences. `left`
are the cycles until the last store is issued, and `performed` those until the fence is over.

In a chain a block waits for the mark of the block before it, and fences. It stores or adds, fences again and
leaves its own mark. `link` are the cycles of one block.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from itertools import product
from pathlib import Path
from typing import Any, Iterator, Sequence

from scripts import exit_code

from tir_schedules.files import Json, check_folder, write_text
from tir_schedules.machines.choice import choose
from tir_schedules.subjects.results import about, as_text, device_facts

FORMS = {
    "st.v4": "st.global.v4.f32 [%0], {%1, %1, %1, %1};",
    "red.v4": "red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %1, %1, %1};",
}
THREADS, BLOCKS, TIMES, CHAINS = (32, 128, 256), (1, 132), (1, 4, 16, 32), (2, 8, 32)
TURNS = 40
"""Times that a chain goes round."""

SOURCE = """
static __device__ long long now()
{{
    long long cycles;
    asm volatile("mov.u64 %0, %clock64;" : "=l"(cycles)::"memory");
    return cycles;
}}

static __device__ void write(float *at, int times)
{{
    for (int i = 0; i < times; ++i)
        asm volatile("{form}" ::"l"(at + (i * blockDim.x + threadIdx.x) * 4), "f"(1.0f) : "memory");
}}

extern "C" __global__ void fenced(float *data, long long *cycles, int times)
{{
    float *at = data + (size_t)blockIdx.x * 65536;
    __syncthreads();
    const long long begin = now();
    write(at, times);
    const long long left = now();
    __threadfence();
    const long long performed = now();
    if (threadIdx.x == 0)
        cycles[2 * blockIdx.x] = left - begin, cycles[2 * blockIdx.x + 1] = performed - begin;
}}

extern "C" __global__ void chain(float *data, long long *cycles, int times, unsigned *marks, int turns)
{{
    const int block = blockIdx.x, blocks = gridDim.x;
    const long long begin = now();
    for (int turn = 1; turn <= turns; ++turn) {{
        if (block > 0 || turn > 1) {{
            const unsigned *mark = marks + 32 * ((block + blocks - 1) % blocks);
            unsigned found, wanted = block ? turn : turn - 1;
            do
                asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(mark) : "memory");
            while (!__all_sync(~0u, found >= wanted));
            __threadfence();
        }}
        write(data, times);
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0)
            asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(marks + 32 * block), "r"(turn)
                         : "memory");
    }}
    if (threadIdx.x == 0)
        cycles[block] = now() - begin;
}}
"""


def rows_of(xp: Any) -> Iterator[Json]:
    """Each kernel runs three times, and the last one counts."""
    data, cycles = xp.zeros(132 * 65536, xp.float32), xp.zeros(4096, xp.int64)
    marks = xp.zeros(32 * max(CHAINS), xp.uint32)
    for name, form in FORMS.items():
        module = xp.RawModule(code=SOURCE.format(form=form))
        fenced, chain = module.get_function("fenced"), module.get_function("chain")
        for threads, blocks, times in product(THREADS, BLOCKS, TIMES):
            for _ in range(3):
                fenced((blocks,), (threads,), (data, cycles, xp.int32(times)))
            left, performed = cycles[: 2 * blocks].reshape(blocks, 2).mean(axis=0).tolist()
            yield {
                "form": name, "threads": threads, "blocks": blocks, "times": times, "left": left,
                "performed": performed,
            }  # fmt: skip
        for threads, blocks, times in product(THREADS[:2], CHAINS, (0, *TIMES)):
            for _ in range(3):
                marks[:] = 0
                chain((blocks,), (threads,), (data, cycles, xp.int32(times), marks, xp.int32(TURNS)))
            link = float(cycles[:blocks].max()) / (TURNS * blocks)
            yield {"form": name, "threads": threads, "chain": blocks, "times": times, "link": link}


def measure(options: Namespace) -> int:
    """Run all, and write the result."""
    check_folder(options.result)
    machine = choose("gpu")
    result = {
        **about(f"experiments/fences.py {options.result.name}"),
        "device": device_facts(machine.describe()),
        "rows": [*rows_of(machine.xp)],
    }
    write_text(options.result, as_text(result))
    print(f"wrote {options.result}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("result", type=Path, metavar="RESULT.json")
    return exit_code(measure, parser, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
