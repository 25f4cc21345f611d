"""Rungs with Hopper's instructions: right on whole and ragged shapes, equal to their twins bit for bit, or
refused in one line that names another rung."""

import re
from itertools import product

import pytest
from hopper_rungs import (
    ARCH,
    FEW,
    KINDS,
    LADDER,
    ODD,
    OTHERS,
    PROGRAMS,
    RAGGED,
    TAKES_ODD,
    WHOLE,
    kind_of,
    limit_programs,
    taken,
    workload,
)
from layers import every_pair, layers

from tir_schedules.compiler.lower import lower
from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import find, find_one
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import run
from tir_schedules.workloads.half_gemm import HalfGemm

SMALL = ["1x8x8", "64x64x64", "64x256x72", "5x72x200"]
ODD_TAKEN = [rung for rung in LADDER if rung.name in TAKES_ODD]
FLOATS = HalfGemm(64, 64, 64, "nt", "float32")
LONG_ODD = "65x131x1345"
LARGER, LARGER_ODD = "521x776x264", "521x777x265"
# Rungs whose blocks go from tile to tile. What tma_store and repacked have of that, cluster has.
TO_TILES = [(limit_programs(rung, 2), workload(WHOLE, KINDS[2])) for rung in LADDER if rung.name in FEW]
QUICK_TO_TILES = [case for case in TO_TILES if case[0].name not in ("tma_store", "repacked")]
# Of odd rows A, B and C; B and C; A alone; A and B; one element.
MISALIGNED = (
    HalfGemm(129, 127, 65, "nt", "float32", output="float16"),
    HalfGemm(67, 65, 72, "nn"),
    HalfGemm(67, 72, 65, "nn", "float32", "bfloat16", "bfloat16"),
    HalfGemm(70, 136, 68, "nt", "float32"),
    HalfGemm(1, 1, 1, "nn"),
)


OF_BOTH = MISALIGNED[3:4]
"""Whose A and B are copied as the first's, and whose C is stored as that of others."""


def check(rung, gemm):
    """Right in both orders of warps and blocks, without a finding, and the twin's bits."""
    (verdict,) = run([(rung, gemm)], ARCH, CpuMachine(orders=2))
    assert verdict.faults == () and verdict.identical


def cases(rungs, shapes):
    """Every rung with every shape and kind, and every shape with every kind, where the rung takes it."""
    triples = [triple for triple in product(rungs, shapes, KINDS) if taken(triple[0], workload(*triple[1:]))]
    return [(rung, workload(shape, kind)) for rung, shape, kind in every_pair(triples)]


def other_configurations():
    """Each at whole and ragged tiles, and at one of the small shapes; shapes and kinds take turns."""
    others = [rung for rung in OTHERS if rung not in LADDER]
    for number, rung in enumerate(others):
        for step, shape in enumerate((WHOLE, RAGGED, SMALL[number % len(SMALL)])):
            kinds = [kind for kind in KINDS if taken(rung, workload(shape, kind))]
            yield rung, workload(shape, kinds[(number + 2 * step) % len(kinds)])


def fewer_blocks_than_tiles():
    """The same of rungs whose blocks go from tile to tile, with every number of them."""
    rungs = [rung for rung in LADDER if rung.name in FEW]
    found = every_pair(list(product(rungs, PROGRAMS, (WHOLE, RAGGED), KINDS)))
    return [(limit_programs(rung, programs), workload(shape, kind)) for rung, programs, shape, kind in found]


@layers(
    "rung, gemm",
    [(rung, workload(RAGGED, kind_of(rung))) for rung in LADDER]
    + QUICK_TO_TILES
    + [(find("hgemm/repacked:64x64")[0], gemm) for gemm in MISALIGNED if gemm not in OF_BOTH],
    cases([rung for rung in LADDER if rung in OTHERS], [WHOLE, RAGGED, *SMALL])
    + TO_TILES
    + [(find_one("hgemm/repacked", "run"), gemm) for gemm in MISALIGNED]
    + [(find("hgemm/repacked:64x64")[0], gemm) for gemm in OF_BOTH]
    + list(other_configurations())
    + fewer_blocks_than_tiles()
    + cases(ODD_TAKEN, [ODD, "1x1x1"])
    + cases(find("hgemm/repacked:128x256,programs=2") + find("hgemm/repacked:64x128"), [ODD, "1x1x1"])
    + cases(find("hgemm/split_k:64x128,splits=2") + find("hgemm/split_k:128x192"), [ODD, LONG_ODD])
    + [(rung, workload(LARGER, kind_of(rung))) for rung in LADDER if rung in OTHERS]
    + [(rung, workload(LARGER_ODD, kind_of(rung))) for rung in ODD_TAKEN],
)  # fmt: skip
def test_schedule_and_twin_are_right_and_equal_bit_for_bit(rung, gemm):
    check(rung, gemm)


TILES = [
    ("warp_specialized:128x128,bm=64,consumers=1", "72x136x72", KINDS[3]),
    ("persistent:128x128,bm=64,consumers=1,programs=2,group=4", "328x136x136", KINDS[2]),
    ("tma_store:64x128,programs=2", "200x264x584", KINDS[1]),
    ("tma_store:64x64,programs=3,group=3", "328x136x72", KINDS[3]),
    ("tma_store:128x192,programs=2", "136x392x72", KINDS[2]),
    ("tma_store:128x256_4_stages,programs=1", "136x264x328", KINDS[2]),
    ("tma_store:256x256,programs=1", "264x264x72", KINDS[4]),
    ("tma_store:192x192,programs=2", "200x392x328", KINDS[2]),
    ("tma_store:128x64,programs=2", "136x136x72", KINDS[1]),
]
"""Tiles of one warpgroup, a last stripe that is lower than others, boxes of C that take turns."""


@layers("name, shape, kind", TILES[::3], TILES)
def test_tiles_of_other_forms(name, shape, kind):
    (rung,) = find(f"hgemm/{name}")
    check(rung, workload(shape, kind))


def test_one_k_tile_and_rows_of_single_elements():
    """The first shapes to break: one tile, one K tile in one stage; copies that are not asynchronous."""
    check(find_one("hgemm/wgmma_async", "run"), HalfGemm(1, 3, 5, "nn"))
    check(find_one("hgemm/warp_specialized", "run"), HalfGemm(1, 8, 8, "nt"))


def test_one_of_several_warpgroups_has_all_rows_of_c():
    """Others must not take its rows for theirs."""
    for name in ("wgmma", "persistent:128x128"):
        check(find(f"hgemm/{name}")[0], HalfGemm(64, 256, 64, "nt"))


@pytest.mark.parametrize(
    "name, gemm, reason",
    [
        ("tma", HalfGemm(64, 64, 65), "rows of A are 130 bytes.*use hgemm/repacked"),
        ("persistent", HalfGemm(64, 65, 64, "nn"), "rows of B are 130 bytes.*use hgemm/repacked"),
        ("tma_store", HalfGemm(64, 60, 64), "rows of C are 120 bytes.*use hgemm/repacked"),
        ("cluster", HalfGemm(64, 65, 64), "rows of C are 130 bytes.*use hgemm/repacked"),
        ("warp_specialized:256x256", FLOATS, "as float32; use --accumulate float16"),
        ("persistent:192x256", FLOATS, "as float32; use --accumulate float16"),
        ("tma_store:128x256,boxes=8", FLOATS, "it takes 278528 bytes of shared memory"),
        ("cluster:boxes=0", FLOATS, "boxes is 0: a warpgroup has 8"),
        ("tma_store:consumers=0", FLOATS, "each of 1 to 3 consumers"),
        ("tma:stages=2", HalfGemm(64, 64, 64), "stages is 2: the ring has 3 to 16 stages"),
        ("wgmma:bk=32", HalfGemm(64, 64, 64), "bk is 64"),
        ("warp_specialized:consumers=4", HalfGemm(64, 64, 64), "each of 1 to 3 consumers"),
        ("stream_k", HalfGemm(64, 60, 64), "rows of C are 120 bytes.*use hgemm/repacked"),
        ("stream_k:worth=0", HalfGemm(64, 64, 64), "worth is 0: .*use worth=1 or more"),
        ("stream_k:worth=4097", HalfGemm(64, 64, 64), "worth is 4097 K tiles, .*use worth=4096 or less"),
        ("cluster:cluster=3", HalfGemm(64, 64, 64), "cluster is 1, 2 or 4"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(name, gemm, reason):
    (rung,) = find(f"hgemm/{name}")
    with pytest.raises(BadInput, match=rf"^hgemm/{name}.* cannot be built for .*{reason}[^\n]*$"):
        lower(rung, gemm, ARCH)


def test_the_architecture_is_one():
    """What others are compiled for where nobody asks, and a GPU's own sm_90, mean sm_90a."""
    tma = find_one("hgemm/tma", "run")
    assert [tma.arch_for(arch) for arch in (CPU_ARCH, "sm_90", "sm_90a")] == [ARCH] * 3
    for other in ("sm_80", "sm_100", "sm_100a"):
        with pytest.raises(BadInput, match=f"^hgemm/tma needs sm_90a, not {other}$"):
            lower(tma, HalfGemm(64, 64, 64), other)
    assert lower(tma, HalfGemm(64, 64, 64), CPU_ARCH).arch == ARCH
    assert find_one("hgemm/wmma_naive", "run").arch_for(CPU_ARCH) == "sm_80"


def test_a_kernel_has_the_text_of_what_it_calls_and_no_more():
    source = lower(find_one("hgemm/tma", "run"), HalfGemm(64, 64, 64), ARCH).source
    defined = re.findall(r"^(?:template <[^>]*> )?static __device__[^(]*?(\w+)\(", source, re.M)
    assert len(defined) == len(set(defined)) and "sync_cluster" not in defined
    for name in defined:
        assert len(re.findall(rf"\b{name}\b", source)) > 1, name
