"""What can be known of rungs without a GPU: resources, counters of the CPU machine, and bounds from a
datasheet. Nothing is timed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Iterator, Sequence

from tir_schedules.bench.tables import refusal
from tir_schedules.bench.views import figures, kind_of, size_of
from tir_schedules.console import print_line, print_table
from tir_schedules.insight.metrics.counting import GLOBAL, SECTOR, SHARED, Metrics
from tir_schedules.insight.metrics.roofline import Gpu, bound
from tir_schedules.insight.metrics.rungs import metrics_of_rungs
from tir_schedules.ladders.problems import SMALL_SHAPES, Job
from tir_schedules.model.counters import Access
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.subjects.subject import Subject

COLUMNS = (
    "rung", "for", "counted on",
    "registers", "shared bytes", "shared wavefronts", "(ideal)", "global sectors", "(packed)", "their bytes",
    "(least)",
)  # fmt: skip


def predictions(jobs: Sequence[Job], gpu: Gpu, arch: str) -> dict[str, Any]:
    """What `bench --predict` prints, as JSON: kernels with counters at a small size, and bounds of the asked
    workloads.

    A kernel is in the configuration that its rung takes for the asked workloads, which are its "for"; a rung
    is counted for one kind.
    """
    bounds = [bound(gpu, workload) for workload in dict.fromkeys(workload for _, workload in jobs)]
    kinds: dict[str, str] = {}
    asked: dict[tuple[str, Workload], tuple[Rung, dict[str, bool]]] = {}
    for rung, workload in jobs:
        kind = str(workload).partition(" ")[2]
        if kind == kinds.setdefault(rung.id, kind):
            fitted, small = rung.fitted(workload), reduced(workload, SMALL_SHAPES[rung.family][0])
            asked.setdefault((fitted.id, small), (fitted, {}))[1][str(workload)] = True
    found, refused = metrics_of_rungs([(rung, workload) for (_, workload), (rung, _) in asked.items()], arch)
    kernels = [
        counters(subject, launches) | {"for": list(asked[subject.name, subject.workload][1])}
        for subject, launches in found
    ]
    return {
        "timed": False,
        "gpu": vars(gpu),
        "arch": arch,
        "kernels": kernels,
        "bounds": bounds,
        "refused": refused,
    }


def reduced(workload: Workload, small: tuple[int, ...]) -> Workload:
    """A workload as it is where the CPU machine takes it; else of the small shape, but where tiles are cut
    off, they are cut off alike."""
    names = ("m", "n", "k") if len(small) == 3 else ("n",)
    extents = zip(names, workload.shape, small)
    return replace(
        workload, **{name: one if one <= least else least + one % least for name, one, least in extents}
    )


def counters(subject: Subject, launches: Sequence[Metrics]) -> dict[str, Any]:
    """Resources of a subject's first launch, and what all its launches cost in memory on the CPU machine."""
    first = launches[0]
    shared = sum((launch.access(*SHARED) for launch in launches), Access())
    memory = sum((launch.access(*GLOBAL) for launch in launches), Access())
    return {
        **subject.identity(),
        "registers": first.binary.resources.registers,
        "shared_bytes": first.shared_bytes,
        "shared_wavefronts": shared.cost,
        "shared_wavefronts_ideal": shared.ideal,
        "global_sectors": memory.cost,
        "global_sectors_ideal": memory.ideal,
        "global_bytes": SECTOR * memory.cost,
        "least_bytes": subject.workload.bytes,
    }


def print_predictions(predicted: dict[str, Any]) -> None:
    """Two tables, and what they are not."""
    gpu = predicted["gpu"]
    print_line("nothing is timed here: these are counters of the CPU machine and bounds from a datasheet")
    print_line()
    print_table(COLUMNS, kernel_lines(predicted["kernels"]), prose={"for": 16, "counted on": 11})
    print_line(
        "a rung is in the configuration that it takes for the sizes it is for, and counted on a size that the"
        " CPU machine takes: what there is per request and per flop hardly changes with the size"
    )
    print_line(
        f"compiled for {predicted['arch']}; ideal: without bank conflicts; packed: every lane's own bytes"
        f" side by side in sectors of {SECTOR} bytes, fewer are needed where lanes share them; least: every"
        " element moved once"
    )
    for row in predicted["refused"]:
        print_line(refusal(row))
    print_line()
    print_table(
        ("bound by datasheet", "kind", "least us", "most", "limited by"), map(bound_line, predicted["bounds"])
    )
    print_line(
        f"{gpu['name']}, datasheet: {gpu['fp32']} TFLOPS fp32, {gpu['fp16']} fp16 and {gpu['mixed']} with"
        f" fp32 sums on tensor cores, {gpu['bandwidth']} GB/s; least us = max(flops / peak, bytes /"
        " bandwidth), every byte moved once"
    )


def kernel_lines(kernels: Sequence[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Kernels as the cells of a table."""
    for row in kernels:
        numbers = [row[name] for name in (
            "registers", "shared_bytes", "shared_wavefronts", "shared_wavefronts_ideal", "global_sectors",
            "global_sectors_ideal",
            "global_bytes", "least_bytes",
        )]  # fmt: skip
        sizes = ", ".join(size_of({"shape": shape}) for shape in row["for"])
        yield (f"{row['name']} ({row['form']})", sizes, row["shape"], *(f"{number:,}" for number in numbers))


def bound_line(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        size_of(row),
        kind_of(row),
        f"{row['least_us']:.2f}",
        f"{figures(row['rate'])} {row['unit']}",
        row["limited_by"],
    )
