"""A line has the number that a reader finds it at: in what `emit` prints of a schedule, and in the files of
a twin."""

import re
from functools import cache
from pathlib import Path

import pytest

import tir_schedules
from tir_schedules.book.chapters import kernel_code
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.emit import emit_text
from tir_schedules.insight.inspection.listing import annotate_lines, home_of
from tir_schedules.insight.metrics.counting import metrics_of
from tir_schedules.insight.times.page import source_of
from tir_schedules.insight.times.timed import target_of, time_rungs
from tir_schedules.ladders.registry import find
from tir_schedules.run import launches
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.reduction import Reduction

ROOT = Path(tir_schedules.__file__).parents[1]
ARCH = "sm_80"
MAKERS = {"schedule": lower, "twin": load_twin}
TWO_LAUNCHES = "sgemm/split_k", Gemm(128, 128, 1024)
"""The first has device functions above its kernel, and its twin has headers."""


@cache
def counted(name, workload, form):
    (rung,) = find(name)
    binaries = [compile_kernel(kernel) for kernel in launches(MAKERS[form], rung, workload, ARCH)]
    return rung, metrics_of(binaries, workload)


@cache
def emitted(name, workload, form="cuda"):
    (rung,) = find(name)
    return emit_text(rung, workload, ARCH, form).split("\n")


def found_at(name, workload, file, number):
    """What a reader finds there."""
    if file.startswith("cuda_reference/"):
        return (ROOT / file).read_text().split("\n")[number - 1].strip()
    assert file.startswith(re.sub(r"\W", "_", name)) and file.endswith("_tir.cu")
    return emitted(name, workload)[number - 1].strip()


@pytest.mark.parametrize("form", MAKERS)
def test_counters_and_listings(form):
    rung, metrics = counted(*TWO_LAUNCHES, form)
    files = set()
    for one in metrics:
        home = home_of(one.binary.kernel)
        listed = annotate_lines(one)
        for line in listed:
            files.add(line.file or home)
            assert found_at(*TWO_LAUNCHES, line.file or home, line.number) == line.text.strip()
        assert {(line.file or home, line.number) for line in listed if line.counters} == {
            (line.file, line.line) for line in one.counters.lines
        }
    two = {"cuda_reference/sgemm/split_k.cu", "cuda_reference/sgemm/split_k_sum.cu"}
    assert two < files if form == "twin" else files == {"sgemm_split_k_32x64_tir.cu"}


@pytest.mark.parametrize("form", MAKERS)
def test_the_book(form):
    rung, metrics = counted(*TWO_LAUNCHES, form)
    home, asked = home_of(metrics[0].binary.kernel), []
    for line in kernel_code(rung, form, metrics[0]).lines:
        if line.number.isdecimal():
            asked.append(found_at(*TWO_LAUNCHES, home, int(line.number)))
            assert asked[-1] == line.code.striptags().strip()
    assert len(asked) > 20


@pytest.mark.parametrize("form", MAKERS)
def test_findings(form):
    """Of the first launch; those of the second are in what is printed for its own size."""
    subject = "reduce/unrolled_warp:article", Reduction(1024)
    _, (first, _) = counted(*subject, form)
    places = [place for one in first.findings for place in (one.location, one.other) if place]
    assert places
    for place in places:
        assert found_at(*subject, place.file, place.line) == place.text


def test_times():
    subject = "sgemm/naive", Gemm(64, 64, 64)
    schedule, twin = time_rungs([(find(subject[0])[0], subject[1])], target_of(), "sm_90a")[:2]
    for timed in schedule, twin:
        home = home_of(timed.binaries[0].kernel)
        assert len(timed.lines) > 3
        for line in timed.lines:
            assert found_at(*subject, line.file or home, line.number) == line.text
        for line in source_of(timed):
            if line.place.isdecimal():
                assert found_at(*subject, home, int(line.place)) == line.code.striptags().strip()


def test_sass():
    subject = "sgemm/naive", Gemm(64, 64, 64)
    sass = "\n".join(emitted(*subject, "sass"))
    numbers = {int(number) for number in re.findall(r'//## File "sgemm_naive_tir.cu", line (\d+)', sass)}
    text = [found_at(*subject, "sgemm_naive_tir.cu", number) for number in sorted(numbers)]
    assert any(line.startswith("C_ptr[") for line in text) and not any(line.startswith("//") for line in text)
