"""Bank conflicts of shared memory, where a rung has them and where it has not."""

import pytest
from sgemm_cases import ARCH, WHOLE

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.insight.metrics.counting import metrics_of
from tir_schedules.ladders.registry import find
from tir_schedules.ladders.sgemm import (
    bf16x6,
    bf16x6_fused,
    bf16x6_mma,
    fp16x3,
    fp16x3_mma,
    lane_quads,
    promoted,
)
from tir_schedules.workloads.split_gemm import SplitGemm


@pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])
@pytest.mark.parametrize("name, stores", [("sgemm/vectorized", 8192), ("sgemm/transposed:32x32", 36864)])
def test_stores_of_a_transposed_tile_meet_the_same_banks(name, stores, make):
    """Article 003's kernel 5 stores A as it lies, without a conflict. Both have the same tiles and take the
    same wavefronts to read them."""
    (metrics,) = metrics_of([compile_kernel(make(find(name)[0], WHOLE, ARCH))], WHOLE)
    accesses = metrics.counters.accesses
    assert (accesses["shared_store"].cost, accesses["shared_store"].ideal) == (stores, 8192)
    assert accesses["shared_load"].cost == accesses["shared_load"].ideal == 196608


@pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])
@pytest.mark.parametrize(
    "name, stores", [("sgemm/transposed:article", 24576), ("sgemm/transposed:diagonal", 16384)]
)
def test_a_tile_stored_diagonally_has_no_conflicts_of_stores(name, stores, make):
    """Of A 8192 in place of 16384, and 8192 of B. Reads take what they did, and no byte is lost."""
    binary = compile_kernel(make(find(name)[0], WHOLE, ARCH))
    accesses = metrics_of([binary], WHOLE)[0].counters.accesses
    assert (accesses["shared_store"].cost, accesses["shared_store"].ideal) == (stores, 16384)
    assert accesses["shared_load"].cost * 3 == accesses["shared_load"].ideal * 5
    assert binary.resources.shared == 2 * 8 * 64 * 4


@pytest.mark.parametrize(
    "name, cost",
    [("sgemm/warp_tiling", 163840), ("sgemm/warp_tiling:128x128x8", 98304), ("sgemm/lane_quads", 65536)],
)
def test_lanes_in_quads_take_the_wavefronts_that_their_text_says(name, cost):
    (metrics,) = metrics_of([compile_kernel(lower(find(name)[0], WHOLE, ARCH))], WHOLE)
    assert metrics.counters.accesses["shared_load"].cost == cost
    assert f"{cost:,}" in lane_quads.__doc__


@pytest.mark.parametrize(
    "rung, layout, kinds",
    [
        (promoted, "nn", {"tma_load": 24576, "wgmma": 6144}),
        (bf16x6, "nn", {"tma_load": 12288, "wgmma": 6144}),
        (fp16x3, "nn", {"tma_load": 8192, "wgmma": 3072}),
        (bf16x6_mma, "nn", {"shared_load": 4096}),
        (bf16x6_mma, "nt", {"shared_load": 4096}),
        (fp16x3_mma, "nn", {"ldmatrix": 4096}),
        (bf16x6_fused, "nn", {"shared_load": 2048, "shared_store": 1536, "wgmma": 3072}),
        (bf16x6_fused, "nt", {"shared_load": 2048, "shared_store": 1536, "wgmma": 3072}),
    ],
    ids=lambda value: value.RUNG.name if hasattr(value, "RUNG") else str(value)[:2],
)
def test_products_of_parts_take_what_their_text_says(rung, layout, kinds):
    gemm = SplitGemm(128, 128, 128, rung.RUNG.config.products, layout=layout)
    one_part = ",splits=1" if rung in (bf16x6_mma, fp16x3_mma, bf16x6_fused) else ""
    (named,) = find(f"{rung.RUNG.id}:64x64{one_part}")
    accesses = metrics_of([compile_kernel(lower(named, gemm, "sm_90a"))], gemm)[0].counters.accesses
    assert {kind: accesses[kind].cost for kind in kinds} == kinds
    texts = {
        kind: f"{cost * 32 >> 10} KiB" if kind == "tma_load" else f"{cost:,}" for kind, cost in kinds.items()
    }
    assert all(text in rung.__doc__ for text in texts.values())


@pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])
@pytest.mark.parametrize(
    "name, cost", [("sgemm/thread_tile_1d", 20480), ("sgemm/thread_tile_2d:article_003", 8192)]
)
def test_neighbours_that_a_thread_brings_are_stored_at_once(name, cost, make):
    """As in article 003's listings. Stored one by one, at a stride of four, they take 69632 and 20480."""
    (metrics,) = metrics_of([compile_kernel(make(find(name)[0], WHOLE, ARCH))], WHOLE)
    stored = metrics.counters.accesses["shared_store"]
    assert stored.cost == stored.ideal == cost
