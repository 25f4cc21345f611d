"""Tiles of free extents: each feature of hgemm/tile_shapes, in schedule and twin; what is refused; faults of
what no other rung has; and which form a gemm takes."""

from dataclasses import replace

import pytest
from hopper_rungs import ARCH, KINDS, workload
from hypothesis import given, settings
from hypothesis import strategies as some
from layers import layers
from mutants import loaded

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import BadInput
from tir_schedules.ladders.hgemm import hopper, tile_choice
from tir_schedules.ladders.hgemm.tile_costs import APART, CONSUMER, MEETING, Estimate, cycles_once
from tir_schedules.ladders.hgemm.tile_shape import Config
from tir_schedules.ladders.registry import find, find_one
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.gpus import find_sm
from tir_schedules.run import outcome_of, run
from tir_schedules.workloads.half_gemm import HalfGemm

RUNG = find_one("hgemm/tile_shapes", "run")
NT_HALF, NN_BFLOAT, NT_MIXED, NN_FLOAT, NN_HALF = KINDS
NT_FLOAT = ("nt", "float32")


def variant(text):
    return find(f"hgemm/tile_shapes:{text}")[0]


SMALL = "16x128,programs=2,stages=3"
"""Tiles of 16x128, swapped; two blocks for all of them."""
WIDE = "128x256,stages=3,programs=2"
WIDER = f"{WIDE},bm=64,part_columns=1,boxes=1"

QUICK = [
    (f"{SMALL},bm=48", "120x264x264", NT_MIXED),  # swapped, several tiles, ragged all ways
    (f"{SMALL},bm=80,boxes=1", "88x136x72", NN_HALF),  # of B, whose rows go along N; sums in float16
    (f"{SMALL},bm=80,bn=64,consumers=1,boxes=3", "240x136x64", NT_MIXED),  # five boxes in three places
    (f"{SMALL},cluster_m=2", "72x136x72", NN_BFLOAT),  # pairs that share B, their last block beyond C
    (f"{SMALL},bm=32,cluster_n=2,part_columns=1,bn=64", "40x136x72", NT_MIXED),  # and those that share A
    (f"{WIDE},bn=48,boxes=1", "264x56x72", NT_HALF),  # boxes of C of 32 bytes
    (f"{WIDE},bn=80,bm=64,part_columns=1,boxes=1,consumers=1", "72x88x72", NT_FLOAT),  # of 64, by pairs
    (f"{WIDE},bm=64,bn=160,part_columns=1,boxes=1,cluster_m=2", "200x168x72", NT_MIXED),
    (f"{SMALL},bm=24", "40x136x72", NT_MIXED),  # boxes of C of 24 rows
    (f"{SMALL},bm=88,boxes=1,bn=64,consumers=1", "96x72x72", NN_HALF),  # of all 88
    (f"{SMALL},bm=32,cluster_m=2,cluster_n=2", "56x264x72", NN_BFLOAT),  # 2 x 2 blocks share both
    (f"{WIDE},bm=64,bn=32,cluster_m=4,boxes=1,consumers=1", "264x40x72", NT_HALF),  # 4 share B
    (f"{SMALL},bn=64,consumers=1,boxes=1,cluster_m=2", "40x72x136", NN_HALF),  # each half of the k of a box
    (f"{WIDER},bn=288", "72x296x72", NT_MIXED),  # of B two boxes for a K tile, as it has more than 256 rows
    (f"{SMALL},bm=272,bn=64,part_columns=1,boxes=1", "280x72x72", NN_BFLOAT),  # and of A
    ("192x192,programs=2,stages=3", "200x200x72", NT_FLOAT),
    ("16x128", "1x8x8", NT_MIXED),
    ("16x128,programs=2,stages=16,bn=64,consumers=1", "24x72x1160", NT_MIXED),  # more K tiles than stages
]
"""Configuration, shape and kind: each feature once, where tiles are small and few."""

MORE = [
    ("144x128,programs=2", "300x264x328", NT_MIXED),
    ("144x128,programs=2", "300x264x328", NN_BFLOAT),
    ("144x128", "8x8x8", NN_HALF),
    ("256x160,programs=2", "520x328x200", NT_MIXED),
    ("256x160", "264x648x72", NT_HALF),
    ("192x192,programs=2", "392x392x328", NT_MIXED),
    ("192x192,cluster_n=1,cluster_m=2,programs=2", "392x200x200", NT_HALF),
    ("192x192,swap=1,cluster_n=1,boxes=2,programs=2", "200x392x72", NN_BFLOAT),
    ("192x192,swap=1,boxes=2,programs=2", "200x392x72", NT_MIXED),
    (f"{WIDE},bn=144,boxes=1", "264x152x200", NT_FLOAT),
    (f"{WIDE},bn=208,boxes=13", "264x216x200", NT_HALF),
    (f"{WIDE},bn=208,boxes=1", "136x424x200", NT_MIXED),
    (f"{WIDE},bn=128,cluster_m=2", "520x136x200", NN_BFLOAT),
    (f"{WIDE},bn=128,cluster_n=2", "264x264x200", NN_FLOAT),
    (f"{SMALL},bm=208,bn=64,consumers=1", "216x136x200", NT_HALF),
    (f"{SMALL},bm=152,bn=64,consumers=1,boxes=1", "160x136x200", NT_MIXED),
    (f"{SMALL},bm=80,part_columns=1,bn=64,boxes=1", "88x136x200", NN_HALF),
    ("128x256,bn=128,cluster_m=2,cluster_n=2", "520x264x328", NT_FLOAT),
    ("128x256,bn=128,cluster_m=2,cluster_n=2", "264x520x328", NN_BFLOAT),
    (f"{SMALL},bm=64,cluster_m=1,cluster_n=4", "72x1032x72", NT_MIXED),
    (f"{SMALL},bm=32,bn=64,consumers=1,boxes=1,cluster_m=4", "136x72x200", NN_BFLOAT),
    ("128x256,bm=64,bn=192,consumers=1,cluster_m=2,cluster_n=2", "136x200x200", NN_FLOAT),
    (f"{SMALL},bm=144,bn=192,consumers=3", "152x200x200", NN_HALF),
    ("128x256,programs=2,stages=2,bm=64,bn=512,part_columns=1,boxes=1,cluster_n=2", "136x1032x72", NT_MIXED),
    ("128x256,programs=2,stages=3,bn=352,part_columns=1,boxes=1,cluster_m=2", "264x360x200", NT_MIXED),
    (f"{SMALL},bm=304,part_columns=1,boxes=1,cluster_m=2", "616x136x200", NN_HALF),
    ("128x256", "1x8x8", NN_FLOAT),
    ("256x160", "1x8x8", NT_MIXED),
]


@layers("name, shape, kind", QUICK, MORE)
def test_schedule_and_twin_are_right_and_equal_bit_for_bit(name, shape, kind):
    (verdict,) = run([(variant(name), workload(shape, kind))], ARCH, CpuMachine(orders=2))
    assert verdict.faults == () and verdict.identical


@pytest.mark.parametrize(
    "name, kind, reason",
    [
        ("consumers=4", NT_HALF, "bm must be a multiple of 64 for each of 1 to 3 consumers"),
        ("swap=1,bn=192", NT_HALF, "bn must be a multiple of 64 for each of 1 to 3 consumers"),
        (
            "part_columns=1,consumers=4",
            NT_HALF,
            "bm must be a multiple of 64, and there are 1 to 3 consumers",
        ),
        ("bm=0", NT_HALF, "bm must be a multiple of 64"),
        ("bm=384,consumers=3", NT_HALF, "bm must be from 1 to 256, and bn from 1 to 256"),
        ("bn=0", NT_HALF, "bm must be from 1 to 256, and bn from 1 to 256"),
        ("bn=264", NT_HALF, "bm must be from 1 to 256, and bn from 1 to 256"),
        (
            "bm=528,bn=64,swap=1,part_columns=1",
            NT_HALF,
            "bn must be from 1 to 256, and bm from 1 to 256 for each consumer",
        ),
        (
            "bm=312,bn=64,swap=1,part_columns=1,consumers=3",
            NT_HALF,
            "bm is 312: each of 2 boxes copies a multiple of 8",
        ),
        ("swap=2", NT_HALF, "swap is 2 and part_columns 0: each is 0 or 1"),
        ("part_columns=2", NT_HALF, "swap is 0 and part_columns 2: each is 0 or 1"),
        (
            "cluster_m=2,cluster_n=4",
            NT_HALF,
            "cluster_m is 2 and cluster_n 4: a cluster has 1, 2 or 4 blocks",
        ),
        ("cluster_m=3", NT_HALF, "cluster_m is 3 and cluster_n 1: a cluster has 1, 2 or 4 blocks"),
        ("cluster_m=0", NT_HALF, "cluster_m is 0 and cluster_n 1: a cluster has 1, 2 or 4 blocks"),
        ("bn=24", NT_HALF, "bn must be a multiple of 16$"),
        ("bn=80,part_columns=1", NT_HALF, "bn must be a multiple of 16 for each consumer"),
        ("swap=1,bm=20", NN_HALF, "bm must be a multiple of 8$"),
        ("bn=48", NN_HALF, "bn must be a multiple of 64 where B is stored KxN"),
        ("bn=72,swap=1,cluster_m=2", NN_HALF, "bn must be a multiple of 64 for each of 1 to 3 consumers"),
        ("bn=80,cluster_m=4", NT_HALF, "bn is 80: the blocks of a cluster copy parts of 8 each"),
        ("swap=1", NT_FLOAT, "swap is 1: stmatrix transposes .* C is float32; use swap=0"),
        ("bm=256,bn=192", NT_FLOAT, "sums of 128x192 do not fit .* as float32; use --accumulate float16"),
        ("boxes=0", NT_HALF, "boxes is 0: a warpgroup has 4, and needs room for one at least"),
        ("stages=17", NT_HALF, "stages is 17: the ring has 2 to 16 stages"),
        ("stages=8", NT_HALF, "bytes of shared memory, and sm_90a has 231424 for it"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(name, kind, reason):
    with pytest.raises(BadInput, match=rf"^hgemm/tile_shapes:{name}.* cannot be built for .*{reason}[^\n]*$"):
        lower(variant(name), workload("64x64x64", kind), ARCH)


def test_rows_that_the_copy_engine_does_not_take_are_refused():
    for gemm, of in (
        (HalfGemm(64, 64, 65), "A"),
        (HalfGemm(64, 65, 64, "nn"), "B"),
        (HalfGemm(64, 60, 64), "C"),
    ):
        with pytest.raises(BadInput, match=f"^hgemm/tile_shapes.*rows of {of} are .*: use hgemm/repacked$"):
            lower(RUNG, gemm, ARCH)


PAIRS = f"{SMALL},cluster_m=2"
FOURS = f"{SMALL},cluster_m=2,cluster_n=2"
EIGHTS = f"{SMALL},bm=24"
NARROW = f"{WIDE},bn=48,boxes=1"
COLUMNS = f"{WIDE},bm=64,bn=128,part_columns=1,boxes=1"
ONE_PLACE = """            if (threadIdx.x == 0)
                wait_until_stores_have_read();
            sync_warpgroup(1 + threadIdx.y);
"""
TOLD = "release_in_cluster(ring_barrier((previous_stage_ptr[0] + 16)), 2);\n        }"
AS_MANY_EACH = "SHARE / ((SHARE + MOST_ROWS - 1) / MOST_ROWS)"
IN_TWIN = {
    "halves of a pair take each other's place": (PAIRS, "(from + c + k)", "(SHARE - from + c + k)"),
    "a block keeps its half": (PAIRS, "load_box_for(blocks,", "load_box_for(1 << block,"),
    "blocks of the first column have what all need": (FOURS, "<< column * STACKED", "<< 0"),
    "blocks of a row have different rows": (FOURS, "FIRST_ROW << row", "FIRST_COLUMN << row"),
    "blocks beside each other have the same tile": (FOURS, "? block / STACKED : 0", "? 0 : 0"),
    "the last eight rows are others": (EIGHTS, "(ROWS / 8) + ROWS / 8 - 1)", "(ROWS / 8))"),
    "both blocks load the first half": (PAIRS, "? block * SHARE : 0", "? 0 : 0"),
    "no block loads the second half": (PAIRS, "X_BY_ROWS, BESIDE>", "X_BY_ROWS, STACKED>"),
    "no block waits for the other": (PAIRS, "        sync_cluster();\n    else", "        ;\n    else"),
    "rows are swizzled as those of 128 bytes": (NARROW, "row / (128 / ROW) % (ROW / 16)", "row % 8"),
    "rows are not swizzled": (NARROW, "row / (128 / ROW) % (ROW / 16)", "0"),
    "matrices are not transposed": (SMALL, ".x4.trans.shared", ".x4.shared"),
    "matrices are in another order": (SMALL, "/ 16 * 8 + threadIdx.x % 8", "/ 8 * 8 + threadIdx.x % 8"),
    "a box is written before the last is stored": (SMALL, ONE_PLACE, ""),
    "warpgroups have the same columns": (COLUMNS, "? warpgroup_number() * WIDTH : 0", "? 0 : 0"),
    "a K tile has its first box alone": (f"{WIDER},bn=288", AS_MANY_EACH, "SHARE"),
    "warpgroups have each other's rows": (COLUMNS, "BY_COLUMNS ? 0 :", "false ? 0 :"),
}  # fmt: skip
"""Fault -> configuration, a text that its twin has once, and the text in its place."""

IN_SCHEDULE = {
    "halves of a pair take each other's place": (PAIRS, "(ax0_0 * 4096)", "(4096 - ax0_0 * 4096)"),
    "a block keeps its half": (PAIRS, "load_box_for(3,", "load_box_for(1 << ax0_0,"),
    "no block is told of an empty stage": (PAIRS, TOLD, "}"),
    "blocks of a row have different rows": (FOURS, "load_box_for(((uint)5", "load_box_for(((uint)3"),
    "the last eight rows have the first sums": (EIGHTS, "16, C_sums_warp_ptr[8])", "16, C_sums_warp_ptr[0])"),
    "rows are swizzled as those of 128 bytes": (NARROW, "^ row / 4 % 2", "^ row % 8"),
    "matrices are not transposed": (SMALL, ".x4.trans.shared", ".x4.shared"),
}  # fmt: skip
"""The same of schedules."""

FAULTY = workload("72x136x264", NT_MIXED)
"""More K tiles than stages, and several tiles for a block."""
BEFORE = [(load_twin, *fault) for fault in IN_TWIN.values()] + [
    (lower, *fault) for fault in IN_SCHEDULE.values()
]


@pytest.mark.parametrize(
    "make, name, text, instead", BEFORE, ids=[*IN_TWIN, *(f"schedule: {what}" for what in IN_SCHEDULE)]
)
def test_faults_are_found(make, name, text, instead):
    source = make(variant(name), FAULTY, ARCH).source
    assert source.count(text) == 1
    faulty = loaded(source.replace(text, instead), variant(name), FAULTY, ARCH)
    assert outcome_of([faulty], FAULTY, CpuMachine(budget=1 << 22)).faults


EXTENTS = some.one_of(
    some.integers(1, 40), some.integers(1, 40).map(lambda n: n * 33), some.integers(1, 4000)
)
FORMATS = [("float16", "float16"), ("float32", "float16"), ("float32", "float32")]


@settings(max_examples=30, deadline=None)
@given(EXTENTS, EXTENTS, EXTENTS, some.sampled_from(FORMATS), some.sampled_from(["nt", "nn"]))
def test_any_aligned_gemm_has_a_form_whose_name_means_it(m, n, k, formats, layout):
    gemm = HalfGemm(m, 8 * n, 8 * k, layout, formats[0], "float16", formats[1])
    chosen = RUNG.fitted(gemm)
    assert chosen.refuses is not None and not chosen.refuses(gemm, chosen.config)
    (named,) = find(chosen.id)
    assert (named.id, named.config) == (chosen.id, chosen.config)


def test_every_form_settles_within_shared_memory_or_not_at_all():
    limit = find_sm(ARCH).shared_limit - hopper.BARRIERS
    for gemm in (
        HalfGemm(1024, 1024, 1024),
        HalfGemm(1024, 1024, 1024, *NN_BFLOAT),
        HalfGemm(64, 64, 64, *NT_FLOAT),
    ):
        for form in (type(RUNG.config)(**each) for each in tile_choice.FORMS):
            if not hopper.reason_against_tile(gemm, form):
                found = [*tile_choice.settle(gemm, form)]
                assert found or form.bm % 16 and form.bm > 136  # a box has all its rows
                for settled in found:
                    assert settled.stages >= 3 and RUNG.launch(gemm, settled).dynamic_shared <= limit
                    assert not RUNG.refuses(gemm, settled)
                assert len({one.boxes for one in found}) == len(found) <= 2


def test_blocks_that_would_read_unevenly_do_not_begin_early():
    """86 blocks, one for an SM, with 90 MB; 85 pairs of them, or of a small B, begin early."""
    thin, tile = HalfGemm(3, 11008, 4096, "nt", "float32", output="float16"), Config(bm=16, bn=128, swap=1)
    few, many = replace(thin, n=64 * 128), replace(thin, n=120 * 128)
    pairs, small = replace(tile, cluster_n=2), replace(thin, k=512)

    def once(gemm, config):
        share = Estimate.of(gemm, config).tiles / hopper.WAVE
        more = CONSUMER * (config.consumers - 1)
        return Estimate.of(gemm, config).once - cycles_once(config.bm * config.bn, share) - more

    assert once(thin, tile) == pytest.approx(APART)
    for gemm in few, many, small:
        assert once(gemm, tile) == pytest.approx(0)
    assert once(thin, pairs) == pytest.approx(MEETING[2])


def test_a_form_may_have_all_boxes_and_fewer_stages():
    """At 12871x1032x128 a tile is two K tiles: with two boxes of nine a warpgroup waits for L2 at its end."""
    gemm = HalfGemm(12871, 1032, 128)
    few, all_boxes = tile_choice.settle(gemm, Config(bm=192, bn=96, consumers=1))
    assert (few.stages, few.boxes, all_boxes.stages, all_boxes.boxes) == (6, 2, 5, 9)
    assert tile_choice.time_of(gemm, all_boxes) < tile_choice.time_of(gemm, few)
    alone = HalfGemm(192, 96, 128)  # one tile, and none behind it that could wait
    assert tile_choice.time_of(alone, all_boxes) >= tile_choice.time_of(alone, few)


def test_no_cluster_has_blocks_without_a_tile():
    gemm = HalfGemm(24, 96, 4096, "nt", "float32", output="float16")
    found = [*tile_choice.settled(gemm, Config)]
    assert {config.cluster_m for config in found if config.bm >= 24} == {1}
    assert {config.cluster_n for config in found if config.bn == 64} == {1, 2}


def test_stripes_are_as_high_as_few_rows_and_columns_at_a_time_need():
    """Where L2 does not hold A and B; see the figures of `height_of_stripes`."""
    large, tile = HalfGemm(1783, 28672, 8192, "nt", "float32", output="float16"), Config(bm=128, bn=256)
    assert tile_choice.with_stripes(large, tile).group == 14
    assert tile_choice.with_stripes(replace(large, m=8192, n=8192), tile).group == 16
    assert tile_choice.with_stripes(replace(large, k=64), tile).group == 5  # 5, 5 and 4 rows
    assert tile_choice.with_stripes(replace(large, m=64), tile).group == 3
    pairs = replace(tile, cluster_m=2)
    assert tile_choice.with_stripes(large, pairs).group == 7


def test_named_forms_are_called_by_their_names():
    assert all(RUNG.variant_of(config) == name for name, config in RUNG.configs.items())
    assert RUNG.variant_of(replace(RUNG.config, swap=1, bm=64)) == "bm=64,swap=1"


def test_a_choice_is_a_configuration_or_the_name_of_one():
    gemm = HalfGemm(64, 64, 64)
    assert replace(RUNG, choose=lambda _: "144x128").fitted(gemm).id == "hgemm/tile_shapes:144x128"
    assert replace(RUNG, choose=lambda _: RUNG.configs["144x128"]).fitted(gemm).variant == "144x128"
    for other in ("144x129", None):
        with pytest.raises(
            BadInput, match=f"^hgemm/tile_shapes: choose returns {other!r}; its configs are 128x256, "
        ):
            replace(RUNG, choose=lambda _: other).fitted(gemm)


OF_BOXES = f"{SMALL},bn=64,consumers=1,boxes=1,cluster_m=2"
PART = "if (block_in_cluster() == ((uint)ax0_0)) {"


@pytest.mark.parametrize("make, text, instead", [
    (load_twin, "k = BY_K ? block * K_SHARE : 0", "k = 0"),
    (load_twin, "from + c + k) * ROW_BYTES", "from + c) * ROW_BYTES"),
    (lower, PART, "if (block_in_cluster() == 0) {"),
])  # fmt: skip
def test_faults_of_parts_of_boxes_are_found(make, text, instead):
    gemm = workload("40x72x264", NN_HALF)
    source = make(variant(OF_BOXES), gemm, ARCH).source
    assert source.count(text) == 1
    faulty = loaded(source.replace(text, instead), variant(OF_BOXES), gemm, ARCH)
    assert outcome_of([faulty], gemm, CpuMachine(budget=1 << 22)).faults
