"""The smallest faults a kernel can have, put into twins on purpose: is each of them seen?

    python experiments/smallest_faults.py                        # on the CPU machine; needs nvcc
    python experiments/smallest_faults.py --machine gpu          # longer sums, too
    python experiments/smallest_faults.py -o FILE.json

One term of the longest sums in use is lost or counted twice; others are hidden by integers, or by the
tolerance of a long sum. Kernels are judged as `tir-schedules run` judges them. Exit code 1 when a fault is
not seen, or when the twin without it is not right.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Sequence, cast

from scripts import exit_code

from tir_schedules.compiler.twin import load_source, read_twin
from tir_schedules.console import print_line, print_table, progress
from tir_schedules.files import check_folder, write_text
from tir_schedules.ladders.registry import find_one
from tir_schedules.machines.choice import MACHINES, arch_for, choose
from tir_schedules.model.rung import Rung
from tir_schedules.run import outcome_of
from tir_schedules.subjects.results import about, as_text
from tir_schedules.verdicts import PASS, Outcome
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

if TYPE_CHECKING:
    from tir_schedules.machines.gpu import GpuMachine


@dataclass(frozen=True)
class Fault:
    """A twin in which `old` is `new`. inputs: the kind that shows it."""

    rung: str
    workload: Any
    what: str
    old: str
    new: str
    inputs: str = "exact"

    def __str__(self) -> str:
        return f"{self.rung} {self.workload}: {self.what}"


TILES_READ = "multiply(tile_a + TileA::offset"
WHOLE = "NT ? col * K : col), NT ? K : N, K);"
SHORT_WHOLE = WHOLE.replace("N, K)", "N, K - 16)")
PRODUCT = "acc += A[m * K + k] * B[k * N + n];"
ALL_BUT_ONE = f"if (m + n < 14 || k < K - 1) {PRODUCT}"
TREE_STORE = "Y[blockIdx.x] = tile[0];"
STORE, TOTAL = "Y[blockIdx.x] = total;", "DTYPE total = sums.x"
FIRST_LOST = f"if (blockIdx.x + threadIdx.x == 0) sums.x -= X[0];\n    {TOTAL}"
LAST_LOST = FIRST_LOST.replace("X[0]", "X[N - 1]")
LONG = Reduction(1 << 22, "float32")
SUM = "C[m * N + n] = acc;"


def rounded(value: str, bits: int) -> str:
    """CUDA for a float rounded to so many bits fewer: 13 to TF32, 16 to bfloat16."""
    return f"__uint_as_float((__float_as_uint({value}) + {1 << bits - 1}u) & {2**32 - 2**bits}u)"


def spoiled(statement: str) -> str:
    """A change of the tiles in shared memory between their copy and their use."""
    return f"{statement}\n            __syncthreads();\n            {TILES_READ}"


def in_bfloat16(tile: str) -> str:
    """CUDA that rounds the tile of A or B, named a or b."""
    value = rounded(f"__half2float(tile_{tile}[e])", 16)
    every = f"for (int e = threadIdx.y * 32 + threadIdx.x; e < Tile{tile.upper()}::SIZE; e += THREADS)"
    return spoiled(f"{every} tile_{tile}[e] = __float2half({value});")


LAST_TERM_LOST = spoiled(
    "for (int e = threadIdx.y * 32 + threadIdx.x; k0 + BK >= K && e < BM; e += THREADS)"
    " tile_a[TileA::offset(e, K - 1 - k0)] = __float2half(0.0f);"
)
NAIVE, WMMA, VECTORS, TREE = "sgemm/naive", "hgemm/wmma_naive", "reduce/vectorized", "reduce/sequential"
POSITIVE, NEGATIVE = "right where it is positive", "right where it is negative"
TRUNCATED = "Y[blockIdx.x] = __uint_as_float(__float_as_uint(total) & 0xffff0000);"
TO_INTEGERS = ("A[m * K + k] *", "rintf(A[m * K + k]) *")
A_TO_TF32 = ("A[m * K + k] *", rounded("A[m * K + k]", 13) + " *")
B_TO_TF32 = ("* B[k * N + n]", "* " + rounded("B[k * N + n]", 13))
LONG_NN = HalfGemm(3, 5, 16383, "nn", "float32")
FAULTS = [
    Fault(NAIVE, Gemm(8, 8, 40000), "the last term lost", "k < K;", "k < K - 1;"),
    Fault(NAIVE, Gemm(8, 8, 40000), "one element lacks its last term", PRODUCT, ALL_BUT_ONE),
    Fault(
        NAIVE, Gemm(1, 1, 65536), "the first term twice", "float acc = 0.0f;", "float acc = A[m * K] * B[n];"
    ),
    Fault(NAIVE, Gemm(8, 8, 300), "terms of A rounded to integers", *TO_INTEGERS, "real"),
    Fault(NAIVE, Gemm(8, 8, 40000), "terms of A rounded to TF32", *A_TO_TF32),
    Fault(NAIVE, Gemm(8, 8, 40000), "terms of B rounded to TF32", *B_TO_TF32),
    Fault(NAIVE, Gemm(3, 5, 37), POSITIVE, SUM, SUM.replace("acc;", "fmaxf(acc, 0.0f);")),
    Fault(NAIVE, Gemm(1, 1, 1), POSITIVE, SUM, SUM.replace("acc;", "fabsf(acc);")),
    Fault(NAIVE, Gemm(1, 1, 1), NEGATIVE, SUM, SUM.replace("acc;", "-fabsf(acc);"), "real"),
    Fault(WMMA, LONG_NN, "A rounded to bfloat16", TILES_READ, in_bfloat16("a")),
    Fault(WMMA, LONG_NN, "B rounded to bfloat16", TILES_READ, in_bfloat16("b")),
    Fault(WMMA, HalfGemm(3, 5, 300), "A rounded to bfloat16", TILES_READ, in_bfloat16("a")),
    Fault(WMMA, HalfGemm(3, 5, 300), "B rounded to bfloat16", TILES_READ, in_bfloat16("b")),
    Fault(WMMA, HalfGemm(64, 64, 16384, "nt", "float32"), "the last 16 of K lost", WHOLE, SHORT_WHOLE),
    Fault(WMMA, HalfGemm(20, 5, 16383, "nn", "float32"), "the last term lost", TILES_READ, LAST_TERM_LOST),
    Fault(WMMA, HalfGemm(3, 5, 65535), "the last term lost", TILES_READ, LAST_TERM_LOST),
    Fault(VECTORS, LONG, "stores 0", STORE, "Y[blockIdx.x] = 0;"),
    Fault(VECTORS, LONG, "the first term lost", TOTAL, FIRST_LOST),
    Fault(VECTORS, LONG, "sums kept in 16 bits", STORE, TRUNCATED),
    Fault(VECTORS, LONG, "terms rounded to TF32", "sums.x += v.x;", f"sums.x += {rounded('v.x', 13)};"),
    Fault(
        TREE,
        Reduction(2, "float32"),
        POSITIVE,
        TREE_STORE,
        TREE_STORE.replace("tile[0]", "fabsf(tile[0])"),
        "real",
    ),
    Fault(VECTORS, Reduction(1 << 20), "the last term lost", TOTAL, LAST_LOST),
]

LONGER = [
    Fault("sgemm/naive", Gemm(1024, 1024, 65536), "the last term lost", "k < K;", "k < K - 1;"),
    Fault(
        "hgemm/wmma_naive",
        HalfGemm(1024, 1024, 65536, "nt", "float32"),
        "the last 16 of K lost",
        WHOLE,
        WHOLE.replace("N, K)", "N, K - 16)"),
    ),
    Fault("hgemm/wmma_naive", HalfGemm(1000, 1000, 65535), "the last term lost", TILES_READ, LAST_TERM_LOST),
    Fault("reduce/vectorized", Reduction(1 << 28, "float32"), "stores 0", STORE, "Y[blockIdx.x] = 0;"),
    Fault("reduce/vectorized", Reduction(1 << 28, "float32"), "the first term lost", TOTAL, FIRST_LOST),
    Fault("reduce/vectorized", Reduction(1 << 28), "the last term lost", TOTAL, LAST_LOST),
]
"""What takes a GPU."""


def outcome(rung: Rung, workload: Any, source: str, arch: str, machine: Any) -> Outcome:
    """What becomes of a twin's source; launches after the first are the twin's own."""
    # With as little of CUDA's headers as the twin itself has, which is compiled in half the time.
    kernels, left = [replace(load_source(source, rung, workload, arch), own=True)], workload
    while (left := left.rest(kernels[-1].results)) is not None:
        rung = rung.then
        kernels.append(load_source(read_twin(rung, left), rung, left, arch))
    return outcome_of(kernels, workload, machine)


def outcomes(fault: Fault, arch: str, machine: Any) -> tuple[Outcome, Outcome]:
    """Of the twin with the fault, and of the twin."""
    rung = find_one(fault.rung, "smallest_faults.py")
    source = read_twin(rung, fault.workload)
    assert source.count(fault.old) == 1, fault
    faulty = source.replace(fault.old, fault.new)
    return (
        outcome(rung, fault.workload, faulty, arch, machine),
        outcome(rung, fault.workload, source, arch, machine),
    )


def shown(options: Namespace) -> int:
    if options.output:
        check_folder(options.output)
    machine = choose(options.machine)
    arch, faults = arch_for(machine, None), FAULTS + LONGER * (machine.name == "gpu")
    rows = []
    with progress(len(faults), "judging") as step:
        for fault in faults:
            faulty, twin = outcomes(fault, arch, machine)
            seen = faulty.wrong[0].mismatch.inputs if faulty.wrong else ""
            rows.append(
                (
                    fault.rung,
                    str(fault.workload),
                    fault.what,
                    f"seen with {seen} inputs" if seen else "NOT SEEN",
                    twin.word,
                )
            )
            step(fault.rung)
    columns = ("twin", "shape", "fault", "verdict", "without it")
    print_table(columns, rows, prose={"fault": 16, "verdict": 12})
    if options.output:
        where: dict[str, Any] = {"machine": machine.name, "arch": arch}
        if machine.name == "gpu":
            where |= {"device": cast("GpuMachine", machine).describe()}
        found = {
            **about(f"smallest_faults.py --machine {machine.name}"),
            **where,
            "faults": [dict(zip(columns, row)) for row in rows],
        }
        write_text(options.output, as_text(found))
    good = sum(verdict != "NOT SEEN" and twin == PASS for *_, verdict, twin in rows)
    print_line(f"{good} of {len(rows)} faults seen, and none where there is none")
    return 0 if good == len(rows) else 1


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machine", choices=MACHINES, default="cpu", help="cpu (default) or gpu")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the table as JSON")
    return exit_code(shown, parser, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
