"""The sweep over block tiles: what warps ask of the L1 cache, and what their block needs."""

from dataclasses import replace

from sweep_counting import prepared
from sweep_points import SWEEPS
from sweep_tables import section
from test_sweeps import line_of, results_of

from tir_schedules.workloads.gemm import Gemm


def test_coalesced_asks_for_sectors_again_that_shared_tile_reads_once():
    small = Gemm(64, 64, 64)
    series = [
        replace(one, values=(32,), counted=small, timed=(small,))
        for one in SWEEPS["tile"].series
        if one.rung in ("sgemm/coalesced", "sgemm/shared_tile")
    ]
    made = prepared([replace(SWEEPS["tile"], series=tuple(series))], "sm_90", timed=False)
    found = {(row["name"].partition(":")[0], row["form"]): row for row in made.points}
    for form in ("schedule", "twin"):
        rows = [found[f"sgemm/{name}", form] for name in ("coalesced", "shared_tile")]
        assert [row["block_sectors"] for row in rows] == 2 * [4 * (32 + 32) * 64 // 8]
        assert [row["global_reads"]["cost"] / row["block_sectors"] for row in rows] == [20, 1]


def test_a_table_has_sectors_and_their_ratio():
    (coalesced,) = [one for one in SWEEPS["tile"].series if one.rung == "sgemm/coalesced"]
    results = results_of(coalesced, timed=False)
    for row in results["points"]:
        row |= {"global_reads": {"requests": 1, "cost": 3000, "ideal": 1000}, "block_sectors": 1500}
        row["occupancy"] |= {"warps": 64}
    text = section("tile", [results])
    assert line_of(text, "| tile ")[4:] == ["warps / SM", "sectors read", "of each block", "ratio"]
    assert line_of(text, "| 16 ")[4:] == ["64", "3,000", "1,500", "2.00x"]
    assert "as article 003 remarks" in text
