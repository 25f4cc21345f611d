"""What can be known of rungs without a GPU: resources, counters of the CPU machine, and bounds from a datasheet. Nothing is timed."""
from __future__ import annotations

from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from os import cpu_count
from typing import Any, Sequence

from tir_schedules.bench.subjects import Subject
from tir_schedules.bench.tables import refusal
from tir_schedules.bench.views import figures, kind_of, size_of
from tir_schedules.console import print_line, print_table, progress
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.machines.execution import Access
from tir_schedules.problems import workload_of
from tir_schedules.rung import Rung, nearest

EXTENT, LENGTH = 256, 1 << 16
"""What the counters are of: square matrices, and an array, small enough for the CPU machine."""
SECTOR = 32  # bytes
COLUMNS = (
    "rung", "shape", "registers", "shared bytes", "shared wavefronts", "(ideal)", "global sectors", "(packed)", "their bytes", "(least)",
)  # fmt: skip


@dataclass(frozen=True)
class Gpu:
    """Figures of a datasheet. TFLOPS of fp32, and of dense fp16 products on tensor cores with fp16 and with fp32 sums; GB/s of memory."""

    name: str
    fp32: float
    fp16: float
    mixed: float
    bandwidth: float

    def peak(self, workload: Any) -> float:
        """TFLOPS for the arithmetic of a workload."""
        accumulate = getattr(workload, "accumulate", None)
        return {None: self.fp32, "float16": self.fp16, "float32": self.mixed}[accumulate]


GPUS = {
    "h200": Gpu("H200 SXM", 66.9, 989, 989, 4800),
    "h100": Gpu("H100 SXM", 66.9, 989, 989, 3350),
    "a100": Gpu("A100 SXM 80 GB", 19.5, 312, 312, 2039),
    "l40s": Gpu("L40S", 91.6, 362, 362, 864),
    "l4": Gpu("L4", 30.3, 121, 121, 300),
    "t4": Gpu("T4", 8.1, 65, 65, 320),
    "rtx4090": Gpu("GeForce RTX 4090", 82.6, 330.3, 165.2, 1008),
    "rtx3090": Gpu("GeForce RTX 3090", 35.6, 142, 71, 936),
}
DEFAULT_GPU = "h200"


def find_gpu(name: str) -> Gpu:
    """A GPU of the table; BadInput with the nearest name when there is none."""
    key = (name or DEFAULT_GPU).lower().replace(" ", "").replace("-", "")
    if key not in GPUS:
        raise BadInput(f"there are no datasheet figures of {name!r}{nearest(key, GPUS)}; there are those of {', '.join(GPUS)}")
    return GPUS[key]


def predictions(jobs: Sequence[tuple[Rung, Any]], options: Any) -> dict[str, Any]:
    """What `bench --predict` prints, as JSON: kernels with counters at a small size, and bounds of the asked workloads."""
    from tir_schedules.bench.session import compiled

    gpu, arch = find_gpu(options.predict), options.arch or CPU_ARCH
    bounds = [bound(gpu, workload) for workload in dict.fromkeys(workload for _, workload in jobs)]
    small = Namespace(**{**vars(options), "mnk": (EXTENT,) * 3, "n": LENGTH})
    rungs = {rung.id: rung for rung, _ in jobs}
    subjects, refused = compiled([(rung, workload_of(rung, small)) for rung in rungs.values()], arch)
    kernels = [subject for subject in subjects if subject.form != "vendor"]
    with progress(len(kernels), "counting") as step, ThreadPoolExecutor(cpu_count()) as pool:
        counted = []
        for subject, future in [(subject, pool.submit(counters, subject)) for subject in kernels]:
            try:
                counted.append(future.result())
            except CheckFailed as error:
                refused.append(subject.refused(str(error)))
            step(subject.label)
    return {"timed": False, "gpu": vars(gpu), "arch": arch, "kernels": counted, "bounds": bounds, "refused": refused}


def counters(subject: Subject) -> dict[str, Any]:
    """Resources of a subject's first launch, and what all its launches cost in memory on the CPU machine."""
    from tir_schedules.machines.cpu import CpuMachine

    machine, workload = CpuMachine(), subject.workload
    arguments, accesses = workload.arguments(), []
    for binary in subject.binaries:
        arguments = workload.prepared(arguments, binary.kernel.grid)
        accesses.append(machine.run(binary, arguments, workload.outputs, count=True).counters.accesses)
    first = subject.binaries[0]
    total = partial(sum_of, accesses)
    shared, memory = total(lambda name: not name.startswith("global_")), total(lambda name: name.startswith("global_"))
    return {
        **subject.identity(),
        "registers": first.resources.registers,
        "shared_bytes": first.resources.shared + first.kernel.dynamic_shared,
        "shared_wavefronts": shared.cost,
        "shared_wavefronts_ideal": shared.ideal,
        "global_sectors": memory.cost,
        "global_sectors_ideal": memory.ideal,
        "global_bytes": SECTOR * memory.cost,
        "least_bytes": workload.bytes,
    }


def sum_of(launches: Sequence[dict[str, Access]], wanted) -> Access:
    """All accesses of launches whose class is wanted."""
    return sum((access for accesses in launches for name, access in accesses.items() if wanted(name)), Access())


def bound(gpu: Gpu, workload: Any) -> dict[str, Any]:
    """The least time a workload can take by the roofline model: all arithmetic at peak, or every byte moved once."""
    arithmetic, memory = workload.flops / gpu.peak(workload) / 1e6, workload.bytes / gpu.bandwidth / 1e3
    least = max(arithmetic, memory)
    rate, unit = (workload.flops / least / 1e6, "TFLOPS") if hasattr(workload, "k") else (workload.bytes / least / 1e3, "GB/s")
    limited = "arithmetic" if arithmetic >= memory else "memory"
    return {"shape": str(workload), "least_us": least, "rate": rate, "unit": unit, "limited_by": limited}


def print_predictions(predicted: dict[str, Any]) -> None:
    """Two tables, and what they are not."""
    gpu = predicted["gpu"]
    print_line("nothing is timed here: these are counters of the CPU machine and bounds from a datasheet")
    print_line()
    print_table(COLUMNS, map(kernel_line, predicted["kernels"]))
    print_line(
        f"compiled for {predicted['arch']}; ideal: without bank conflicts; packed: every lane's own bytes side by side in sectors of"
        f" {SECTOR} bytes, fewer are needed where lanes share them; least: every element moved once"
    )
    for row in predicted["refused"]:
        print_line(refusal(row))
    print_line()
    print_table(("bound by datasheet", "kind", "least us", "most", "limited by"), map(bound_line, predicted["bounds"]))
    print_line(
        f"{gpu['name']}, datasheet: {gpu['fp32']} TFLOPS fp32, {gpu['fp16']} fp16 and {gpu['mixed']} with fp32 sums on tensor cores,"
        f" {gpu['bandwidth']} GB/s; least us = max(flops / peak, bytes / bandwidth), every byte moved once"
    )


def kernel_line(row: dict[str, Any]) -> tuple[str, ...]:
    """A kernel as the cells of a table."""
    numbers = [row[name] for name in (
        "registers", "shared_bytes", "shared_wavefronts", "shared_wavefronts_ideal", "global_sectors", "global_sectors_ideal",
        "global_bytes", "least_bytes",
    )]  # fmt: skip
    return (f"{row['name']} ({row['form']})", row["shape"], *(f"{number:,}" for number in numbers))


def bound_line(row: dict[str, Any]) -> tuple[str, ...]:
    return (size_of(row), kind_of(row), f"{row['least_us']:.2f}", f"{figures(row['rate'])} {row['unit']}", row["limited_by"])
