"""Rows of C that are rotated, so that stores begin with lines of memory."""

from layers import layers
from lowered import ARCH, faults, named, source
from mutants import loaded

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.insight.metrics.counting import metrics_of
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.split_gemm import SplitGemm

WIDE, NARROW = "sgemm/split_k:128x128,splits=1", "sgemm/split_k:64x64,splits=1"
LARGE = Gemm(512, 517, 16)


def stored(text):
    """The lines that store to C."""
    return [line for line in text.splitlines() if "C_ptr[" in line and "=" in line]


def test_a_store_begins_with_a_line_wherever_its_row_does():
    (rotated,), (plain,) = stored(source(WIDE, LARGE)), stored(source(WIDE, LARGE, ["rotate_rows"]))
    assert "& 31)) & 127)" in rotated and "& 127" not in plain


def test_stores_take_fewer_sectors():
    """A row of 128 columns takes 4 stores of 128 bytes. Of a row that begins within a sector, each of them
    touches five sectors, and of a rotated one three touch four."""
    stores = [
        metrics_of([compile_kernel(loaded(text, named(WIDE), LARGE, ARCH))], LARGE)[0].access("global_store")
        for text in (source(WIDE, LARGE), source(WIDE, LARGE, ["rotate_rows"]))
    ]
    rotated, plain = stores
    assert (
        rotated.requests < 1.01 * plain.requests
    )  # the last tile begins within another one, and has half of its rows
    assert rotated.cost < 0.88 * plain.cost


def test_tiles_of_two_lines_are_not_rotated():
    (store,) = stored(source(NARROW, LARGE))
    assert "& 31)" not in store


SHAPES = [(131, 133, 17), (128, 257, 16), (60, 131, 9), (129, 66, 16), (256, 198, 8)]


@layers(
    "name, shape",
    [(WIDE, SHAPES[0]), (WIDE, SHAPES[2])],
    [(name, shape) for name in (WIDE, "sgemm/split_k:96x96,splits=1", "sgemm/stream_k") for shape in SHAPES],
)
def test_c_is_right(name, shape):
    assert not faults(name, source(name, Gemm(*shape)), Gemm(*shape))


def test_the_guard_asks_for_the_column_that_is_stored():
    """C is smaller than a tile, so that the guard matters: without it rows of C are written beyond their
    ends."""
    gemm = Gemm(60, 99, 9)
    text = source(WIDE, gemm)
    (guard,) = [line for line in text.splitlines() if "< 99" in line and "if (" in line]
    broken = text.replace(guard, guard.replace("< 99", "< 103"))
    assert not faults(WIDE, text, gemm) and faults(WIDE, broken, gemm)


def test_a_barrier_keeps_c_from_overwriting_what_others_still_multiply():
    name, gemm = "sgemm/bf16x6_mma:64x64,splits=1", SplitGemm(64, 65, 64)
    assert not faults(name, source(name, gemm), gemm)
    assert any(
        "race" in str(fault) for fault in faults(name, source(name, gemm, ["synchronize_before"]), gemm)
    )
