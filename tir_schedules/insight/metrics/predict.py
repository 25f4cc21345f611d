"""What can be known of rungs without a GPU: resources, counters of the CPU machine, and bounds from a
datasheet. Nothing is timed."""

from __future__ import annotations

from dataclasses import fields, replace
from math import prod
from typing import Iterator, Sequence

from tir_schedules.bench.tables import refusal
from tir_schedules.bench.views import figures, kind_of, size_of
from tir_schedules.console import print_line, print_table
from tir_schedules.files import Json
from tir_schedules.insight.metrics.counting import GLOBAL, SECTOR, SHARED, Metrics
from tir_schedules.insight.metrics.roofline import Gpu, bound
from tir_schedules.insight.metrics.rungs import metrics_of_rungs
from tir_schedules.ladders.problems import SMALL_SHAPES, Job
from tir_schedules.model.counters import Access
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.subjects.subject import Subject

COLUMNS = (
    "rung", "for", "counted on", "registers", "shared bytes", "shared wavefronts", "(ideal)",
    "global sectors", "(ideal)", "bytes", "(compulsory)",
)  # fmt: skip

NUMBERS = (
    "registers", "shared_bytes", "shared_wavefronts", "shared_wavefronts_ideal", "global_sectors",
    "global_sectors_ideal", "global_bytes", "least_bytes",
)  # fmt: skip
"""Fields of a kernel's JSON, in the order of the columns."""


def predictions(jobs: Sequence[Job], gpu: Gpu, arch: str, counted: Sequence[Job] | None = None) -> Json:
    """What `bench --predict` prints, as JSON: kernels with counters at a small size, and bounds of the asked
    workloads.

    A kernel is in the configuration that its rung takes for the asked workloads, which are its "for"; a rung
    is counted for one kind. counted: the jobs whose kernels are counted, all by default.
    """
    bounds = [bound(gpu, workload) for workload in dict.fromkeys(workload for _, workload in jobs)]
    kinds: dict[str, str] = {}
    asked: dict[tuple[str, Workload], tuple[Rung, dict[str, bool]]] = {}
    for rung, workload in jobs if counted is None else counted:
        kind = str(workload).partition(" ")[2]
        if kind == kinds.setdefault(rung.id, kind):
            fitted, small = rung.fitted(workload), reduce_workload(workload, SMALL_SHAPES[rung.family][0])
            asked.setdefault((fitted.id, small), (fitted, {}))[1][str(workload)] = True
    found, refused = metrics_of_rungs([(rung, workload) for (_, workload), (rung, _) in asked.items()], arch)
    kernels = [
        counters(subject, launches, rung.entry) | {"for": list(sizes)}
        for subject, launches in found
        for rung, sizes in [asked[subject.name, subject.workload]]
    ]
    return {
        "timed": False,
        "gpu": vars(gpu),
        "arch": arch,
        "kernels": kernels,
        "bounds": bounds,
        "refused": refused,
    }


def largest_of(jobs: Sequence[Job]) -> list[Job]:
    """Each rung with its largest workload, of the first kind where several are as large."""
    found: dict[str, Job] = {}
    for rung, workload in jobs:
        if rung.id not in found or prod(workload.shape) > prod(found[rung.id][1].shape):
            found[rung.id] = rung, workload
    return list(found.values())


def reduce_workload(workload: Workload, small: tuple[int, ...]) -> Workload:
    """A workload as it is where the CPU machine takes it; else of the small shape, but where tiles are cut
    off, they are cut off alike."""
    names = [field.name for field in fields(workload)][: len(small)]
    extents = zip(names, workload.shape, small)
    return replace(
        workload, **{name: one if one <= least else least + one % least for name, one, least in extents}
    )


def counters(subject: Subject, launches: Sequence[Metrics], entry: str) -> Json:
    """Resources of the first launch of the rung's own kernel, and what all launches cost in memory on the CPU
    machine. entry: name of that kernel."""
    own = next(one for one in launches if one.binary.kernel.entry == entry)
    shared = sum((launch.access(*SHARED) for launch in launches), Access())
    memory = sum((launch.access(*GLOBAL) for launch in launches), Access())
    return {
        **subject.identity(),
        "registers": own.binary.resources.registers,
        "shared_bytes": own.binary.shared_bytes,
        "shared_wavefronts": shared.cost,
        "shared_wavefronts_ideal": shared.ideal,
        "global_sectors": memory.cost,
        "global_sectors_ideal": memory.ideal,
        "global_bytes": SECTOR * memory.cost,
        "least_bytes": subject.workload.bytes,
    }


def print_predictions(predicted: Json) -> None:
    """Two tables, and what they are not."""
    gpu = predicted["gpu"]
    print_line("Nothing is timed here: these are counters of the CPU machine and bounds from a datasheet.")
    print_line()
    print_table(COLUMNS, kernel_lines(predicted["kernels"]), prose={"for": 16, "counted on": 11})
    print_line(
        "A rung is in the configuration that it takes for the sizes it is for: the largest, if no sizes are"
        " asked for. It is counted on a small size: figures per request and per flop hardly change with the"
        " size."
    )
    print_line(
        f"Compiled for {predicted['arch']}. Ideal wavefronts: without bank conflicts. Ideal sectors: the"
        f" bytes that the lanes of an access ask for, each once, in sectors of {SECTOR} bytes."
        " Compulsory bytes: every element moved once."
    )
    for row in predicted["refused"]:
        print_line(refusal(row))
    print_line()
    print_table(
        ("bound by datasheet", "kind", "shortest us", "at most", "limited by"),
        map(bound_line, predicted["bounds"]),
    )
    tensor = f"{gpu['fp16']} fp16 and {gpu['mixed']} with fp32 accumulators on tensor cores"
    print_line(
        f"{gpu['name']}, datasheet: {gpu['fp32']} TFLOPS fp32,"
        f" {tensor if gpu['fp16'] else 'no tensor cores'}, {gpu['bandwidth']} GB/s."
        " shortest us = max(flops / peak, compulsory bytes / bandwidth)."
    )


def kernel_lines(kernels: Sequence[Json]) -> Iterator[tuple[str, ...]]:
    """Kernels as the cells of a table."""
    for row in kernels:
        numbers = [row[name] for name in NUMBERS]
        sizes = ", ".join(size_of({"shape": shape}) for shape in row["for"])
        yield (f"{row['name']} ({row['form']})", sizes, row["shape"], *(f"{number:,}" for number in numbers))


def bound_line(row: Json) -> tuple[str, ...]:
    return (
        size_of(row),
        kind_of(row),
        f"{row['least_us']:.2f}",
        f"{figures(row['rate'])} {row['unit']}",
        row["limited_by"],
    )
