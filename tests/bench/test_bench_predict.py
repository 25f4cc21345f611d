"""What is said of rungs without a GPU."""
import json

from tir_schedules import cli


def predicted(capsys, *arguments):
    assert cli.main(["bench", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_counters_are_of_both_kernels_at_a_size_the_cpu_machine_takes(capsys):
    found = predicted(capsys, "sgemm/naive", "--sizes", "4096", "--predict")
    assert [(row["form"], row["shape"]) for row in found["kernels"]] == [("schedule", "256x256x256"), ("twin", "256x256x256")]
    for row in found["kernels"]:
        # Each warp reads 32 rows of A, a sector each, and one element of B, for every k; and stores 32 rows of C.
        warps = 256 * 256 // 32
        assert row["global_sectors"] == warps * (256 * 33 + 32) and row["global_bytes"] == 32 * row["global_sectors"]
        assert row["shared_bytes"] == row["shared_wavefronts"] == 0 and row["registers"] > 0
    assert [row["shape"] for row in found["bounds"]] == ["4096x4096x4096"] and found["timed"] is False


def test_bank_conflicts_of_a_rung_show(capsys):
    rows = predicted(capsys, "reduce/interleaved", "reduce/sequential", "--predict")["kernels"]
    ratios = {row["name"]: row["shared_wavefronts"] / row["shared_wavefronts_ideal"] for row in rows}
    assert ratios["reduce/sequential"] == 1 and ratios["reduce/interleaved"] > 3


def test_what_is_printed_says_that_nothing_was_timed(capsys):
    assert cli.main(["bench", "--predict", "sgemm/naive", "--sizes", "1024"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("nothing is timed here") and "H200 SXM, datasheet: 66.9 TFLOPS" in out and "32.10" in out
