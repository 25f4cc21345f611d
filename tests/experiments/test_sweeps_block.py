"""The sweep over block sizes: sums of several launches, counted, and packed with CUB."""

from dataclasses import replace

import sweeps
from sweep_points import SWEEPS, Series
from sweep_tables import section
from test_sweeps import line_of, results_of

from tir_schedules.bench import vendor
from tir_schedules.subjects.packs import load_pack
from tir_schedules.workloads.reduction import Reduction

ARCH = "sm_90"
SHUFFLE = next(series for series in SWEEPS["block"].series if series.rung == "reduce/shuffle")


def test_blocks_have_what_warps_do_and_rates_of_sums():
    text = section("block", [results_of(SHUFFLE)])
    assert line_of(text, "| block ")[4:] == ["warp instructions", "barriers", "wavefronts", "us", "GB/s"]
    assert line_of(text, "| 512 ")[4:] == ["7,002", "1,002", "9,996", "25.0 / 26.0", "5369 / 5162"]
    assert "- CUB: 10.0 us, 13422 GB/s\n" in text and "reduce/shuffle int32 at 2^25, sm_90:" in text
    assert "counted by the CPU machine for 65536 int32; a barrier" in text
    assert "sequential pays for that level" in text


def test_all_launches_of_a_sum_are_counted_and_packed_with_cub(calling, tmp_path, monkeypatch):
    """Two launches: 512 elements, then as many as there were blocks."""
    sums = Series("reduce/sequential:rfactor", "block", (128, 256), (Reduction(512),), Reduction(512))
    monkeypatch.setitem(SWEEPS, "block", replace(SWEEPS["block"], series=(sums,)))
    monkeypatch.setattr(vendor, "build_cub", lambda arch: b"CUB")
    path = tmp_path / "s.zip"
    assert calling(sweeps.main)("block", "--pack", path, "--arch", ARCH)[0] == 0
    pack = load_pack(path)
    assert pack.cub == b"CUB" and {len(subject.binaries) for subject in pack.subjects} == {0, 2}
    barriers = {(row["name"][-3:], row["form"]): row["barriers"] for row in pack.about["points"]}
    # Barriers of a block, its warps, blocks of both launches; a schedule needs none after its last level.
    assert barriers == {
        ("128", "schedule"): 7 * 4 * (4 + 1),
        ("128", "twin"): 8 * 4 * (4 + 1),
        ("256", "schedule"): 8 * 8 * (2 + 1),
        ("256", "twin"): 9 * 8 * (2 + 1),
    }
    wavefronts = [(row["reads"]["cost"], row["writes"]["cost"]) for row in pack.about["points"]]
    assert wavefronts[-1] == (3 * 25, 3 * 20) and all(
        row["warp_instructions"] for row in pack.about["points"]
    )
