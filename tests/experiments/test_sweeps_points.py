"""What is swept and what cannot be: the CPU machine agrees; the model of what a wave of blocks touches."""

import pytest
from sweep_points import SWEEPS, varied
from sweep_waves import block_sectors, tiles_in_order, waves

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import CheckFailed
from tir_schedules.insight.metrics.counting import metrics_of
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import run
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm

EVERY_SERIES = [series for sweep in SWEEPS.values() for series in sweep.series]
ARCH = "sm_90"


def series_of(sweep, rung, layout="nt"):
    (found,) = [
        one
        for one in SWEEPS[sweep].series
        if one.rung == rung and (rung.startswith("sgemm") or one.timed[0].layout == layout)
    ]
    return found


def reasons(series, form="schedule", arch=ARCH):
    """Label of a point -> why it cannot be, of those that cannot."""
    found = {point.label: series.cannot(point, form, arch) for point in series.points()}
    return {label: reason for label, reason in found.items() if reason}


def test_what_is_asked_for_is_swept():
    assert {(*map(str, range(2, 7)),)} == {
        tuple(point.label for point in series.points()) for series in SWEEPS["stages"].series
    }
    for series in SWEEPS["padding"].series:
        assert series.field == "padding" and {0, 2, 4, 8, 16} <= set(series.values)
    (swizzle,) = SWEEPS["swizzle"].series
    assert swizzle.values == (1, 2, 4, 8, 16, 32) and [workload.m for workload in swizzle.timed] == [
        4096,
        8192,
    ]
    for series in SWEEPS["block"].series:
        assert series.field == "block" and series.values == (128, 256, 512, 1024)
    for series in SWEEPS["tile"].series:
        assert series.field in ("ts", "bm") and series.timed[0].m in (2048, 4096)
    article = series_of("padding", "hgemm/wmma_padded:article_004").points()[0].rung.config
    assert (article.bm, article.bn, article.bk) == (128, 256, 32)  # article 004's tile


@pytest.mark.parametrize("series", EVERY_SERIES, ids=lambda series: series.title)
def test_a_point_differs_from_its_rung_in_one_field_and_the_twin_is_told(series):
    base = find(series.rung)[0]
    for point in series.points()[: len(series.values)]:
        changed = {
            name for name, value in vars(point.rung.config).items() if value != getattr(base.config, name)
        }
        assert changed <= {series.field} and getattr(point.rung.config, series.field) == point.value
        assert point.rung.id.startswith(base.id) and point.rung.id.endswith(f"{series.field}={point.value}")
        assert (
            f"#define {series.field.upper()} {point.value}\n"
            in load_twin(point.rung, series.timed[0], ARCH).source
        )
    assert any(getattr(base.config, series.field) == value for value in series.values)


def test_rows_must_start_where_accesses_can():
    for series in SWEEPS["padding"].series[:6]:
        assert set(reasons(series)) == set(reasons(series, "twin")) == {"2", "4"}
        assert "multiple of 16 bytes" in reasons(series)["2"]
    assert set(reasons(series_of("padding", "sgemm/pipelined"))) == {"2"}
    narrow = series_of("padding", "sgemm/multistage:32x32")
    assert reasons(narrow) == {} and set(reasons(narrow, "twin")) == {"2"}


def test_shared_memory_of_the_architecture_is_the_limit():
    deep = series_of("stages", "hgemm/mma_multistage")
    assert set(reasons(deep, "twin")) == {"5", "6"}
    assert reasons(deep)["5"] == "a block would take 240 KiB of shared memory; sm_90 has 227 KiB for one"
    assert set(reasons(deep, "twin", "sm_80")) == {"4", "5", "6"} and set(reasons(deep, "twin", "sm_89")) == {
        "3",
        "4",
        "5",
        "6",
    }
    assert set(reasons(deep, "twin", "sm_75").values()) == {"it needs sm_80 or later"}


def objections(rung, workload, make=lower):
    """Kinds of what the CPU machine finds, or what keeps the kernel from being compiled."""
    try:
        (metrics,) = metrics_of([compile_kernel(make(rung, workload, ARCH))], workload)
    except CheckFailed as error:
        return {str(error)}
    return {finding.kind for finding in metrics.findings}


def test_rows_that_start_elsewhere_are_misaligned():
    rung = varied(find("hgemm/wmma_padded:article_004")[0], "padding", 4)
    assert "misaligned" in objections(rung, HalfGemm(128, 256, 32))
    (reason,) = objections(rung, HalfGemm(128, 256, 32), load_twin)
    assert "rows must start on 16 bytes" in reason


@pytest.mark.slow
@pytest.mark.parametrize("series", SWEEPS["stages"].series, ids=lambda series: series.rung)
def test_schedules_cannot_have_a_ring_of_2_and_twins_can(series):
    assert objections(varied(find(series.rung)[0], "stages", 2), series.counted)
    assert not objections(varied(find(series.rung)[0], "stages", 2), series.counted, load_twin)


@pytest.mark.slow
@pytest.mark.parametrize(
    "series",
    [series for name in ("padding", "stages", "block", "tile") for series in SWEEPS[name].series],
    ids=lambda series: series.title,
)
def test_what_is_timed_computes_the_right_thing(series):
    ends = [
        point
        for point in series.points()
        if point.value is not None and not series.cannot(point, "schedule", ARCH)
    ]
    jobs = [(point.rung, series.counted) for point in (ends[0], ends[-1])]
    assert all(verdict.ok for verdict in run(jobs, ARCH, CpuMachine()))


@pytest.mark.slow
@pytest.mark.parametrize("width", SWEEPS["swizzle"].series[0].values)
def test_every_swizzle_computes_the_right_thing(width):
    jobs = [
        (varied(find("hgemm/wmma_swizzled_grid")[0], "threadblock_swizzle", width), HalfGemm(512, 512, 64))
    ]
    assert all(verdict.ok for verdict in run(jobs, ARCH, CpuMachine()))


def test_a_block_needs_its_rows_of_a_and_columns_of_b():
    coalesced, transposed = find("sgemm/coalesced")[0], find("sgemm/transposed:article")[0]
    assert block_sectors(coalesced, Gemm(64, 64, 16)) == 4 * (32 + 32) * 16 // 8
    assert block_sectors(varied(transposed, "bm", 32), Gemm(64, 64, 16)) == 2 * (32 + 64) * 16 // 8


def test_blocks_start_group_by_group_every_second_upwards():
    assert list(tiles_in_order((2, 2, 1))) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert list(tiles_in_order((1, 3, 2))) == [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1)]


def swizzled(value, together, columns=4):
    """Waves of a grid of 4 rows; tiles are 256 x 128, K is 64: a row of A has 32 KiB, a column of B 16."""
    return waves(
        varied(find("hgemm/wmma_swizzled_grid")[0], "threadblock_swizzle", value),
        HalfGemm(4 * 256, columns * 128, 64),
        together,
    )


def test_a_wave_touches_the_rows_and_columns_of_its_blocks():
    row, column = 256 * 64 * 2, 128 * 64 * 2
    plain = waves(find("hgemm/wmma_staged_epilogue")[0], HalfGemm(4 * 256, 4 * 128, 64), 4)
    assert (
        (plain.count, plain.mean_bytes)
        == (4, row + 4 * column)
        == (swizzled(4, 4).count, swizzled(4, 4).mean_bytes)
    )
    assert swizzled(2, 4).mean_bytes == 2 * row + 2 * column and swizzled(1, 4).mean_bytes == 4 * row + column
    # Rows of the columns: 0 1 2 | 3, then 3 2 | 1 0, then 0 | 1 2 3, then 3 2 1 | 0.
    uneven = swizzled(1, 3)
    assert (
        uneven.count == 6
        and uneven.mean_bytes == ((3 + 2 + 2 + 3 + 3 + 1) * row + (1 + 2 + 2 + 1 + 1 + 1) * column) / 6
    )
