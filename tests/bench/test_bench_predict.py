"""What is said of rungs without a GPU."""

import json
import re

from tir_schedules.cli import main as cli
from tir_schedules.insight.metrics import predict
from tir_schedules.insight.metrics.predict import reduce_workload
from tir_schedules.subjects.subject import Subject
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction


def predicted(capsys, *arguments):
    assert cli.main(["bench", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_counters_are_of_both_kernels_at_a_size_the_cpu_machine_takes(capsys):
    found = predicted(capsys, "sgemm/naive", "--sizes", "4096", "--predict")
    assert [(row["form"], row["shape"]) for row in found["kernels"]] == [
        ("schedule", "256x256x256"),
        ("twin", "256x256x256"),
    ]
    for row in found["kernels"]:
        # Each warp reads 32 rows of A, a sector each, and one element of B, for every k; and stores 32 rows
        # of C.
        warps = 256 * 256 // 32
        assert (
            row["global_sectors"] == warps * (256 * 33 + 32)
            and row["global_bytes"] == 32 * row["global_sectors"]
        )
        assert row["shared_bytes"] == row["shared_wavefronts"] == 0 and row["registers"] > 0
    assert [row["shape"] for row in found["bounds"]] == ["4096x4096x4096"] and found["timed"] is False


def test_times_stand_beside_the_bounds(capsys):
    words = ("sgemm/shared_tile", "--sizes", "128,256", "--predict", "--time")
    found = predicted(capsys, *words)
    assert found["gpu"]["name"] == "H100 SXM" and found["arch"] == "sm_90a"
    assert [(row["shape"][:3], row["form"].partition(",")[0]) for row in found["times"]] == [
        (size, form) for size in ("128", "256") for form in ("schedule", "twin")
    ]
    bounds = {row["shape"]: row["least_us"] for row in found["bounds"]}
    assert all(row["predicted_us"] > bounds[row["shape"]] for row in found["times"])
    assert cli.main(["bench", *words]) == 0
    out = capsys.readouterr().out
    assert re.search(r"kernel +shape +bound us +predicted us +TFLOPS", out)
    assert cli.main(["bench", "sgemm/naive", "--predict", "b200", "--time"]) == 2
    assert cli.main(["bench", "sgemm/naive", "--time"]) == 2
    assert "--time does not go with measuring" in capsys.readouterr().err


def test_bank_conflicts_of_a_rung_show(capsys):
    rows = predicted(capsys, "reduce/interleaved", "reduce/sequential", "--predict")["kernels"]
    ratios = {row["name"]: row["shared_wavefronts"] / row["shared_wavefronts_ideal"] for row in rows}
    assert ratios["reduce/sequential"] == 1 and ratios["reduce/interleaved"] > 3


def test_what_is_printed_says_that_nothing_was_timed(capsys):
    assert cli.main(["bench", "--predict", "sgemm/naive", "--sizes", "1024"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"sgemm/naive \(twin\) +1024 +256x256x256 ", out)
    assert (
        out.startswith("Nothing is timed here")
        and "H200 SXM, datasheet: 66.9 TFLOPS" in out
        and "32.10" in out
    )


def test_the_kernel_that_is_counted_is_the_one_of_the_size_asked_for(capsys, monkeypatch):
    def counted(jobs, arch):
        return [(Subject("sgemm", rung.id, "schedule", size), rung.config.bm) for rung, size in jobs], []

    monkeypatch.setattr(predict, "metrics_of_rungs", counted)
    monkeypatch.setattr(
        predict,
        "counters",
        lambda one, rows, entry: {"name": one.name, "bm": rows, "shape": str(one.workload)},
    )
    found = predicted(capsys, "sgemm/multistage", "--sizes", "256,1024,1056,1280", "--predict")
    assert found["kernels"] == [
        {"name": "sgemm/multistage:32x32", "bm": 32, "shape": "256x256x256", "for": ["256x256x256"]},
        {
            "name": "sgemm/multistage:64x128",
            "bm": 64,
            "shape": "256x256x256",
            "for": ["1024x1024x1024", "1280x1280x1280"],
        },
        {
            "name": "sgemm/multistage:64x128",
            "bm": 64,
            "shape": "288x288x288",
            "for": ["1056x1056x1056"],
        },  # the last tiles are as full
    ]


def test_without_sizes_only_the_configuration_for_the_largest_is_counted(capsys):
    found = predicted(capsys, "reduce/interleaved", "--predict")
    assert {tuple(row["for"]) for row in found["kernels"]} == {(found["bounds"][-1]["shape"],)}
    assert len(found["bounds"]) > 1


def test_small_problems_are_counted_as_they_are_and_larger_ones_are_cut_off_alike():
    assert reduce_workload(HalfGemm(100, 512, 2048, "nn", "float32"), (512, 512, 256)) == HalfGemm(
        100, 512, 256, "nn", "float32"
    )
    assert reduce_workload(Gemm(1000, 3000, 776), (256, 256, 256)) == Gemm(488, 440, 264)
    assert reduce_workload(Reduction((1 << 28) + 3), (1 << 16,)) == Reduction((1 << 16) + 3)


def test_a_rung_that_an_estimate_chooses_is_counted(capsys):
    found = predicted(capsys, "sgemm/fastest", "--mnk", "16,16,16", "--predict")
    (name,) = {row["name"] for row in found["kernels"]}
    assert name.startswith("sgemm/split_k:")


def test_registers_are_of_the_kernel_that_multiplies(capsys):
    """Copies of A and B, which have no shared memory, stand before it."""
    found = predicted(capsys, "hgemm/repacked:64x64", "--mnk", "33,33,33", "--arch", "sm_90", "--predict")
    assert all(row["shared_bytes"] > 16 << 10 for row in found["kernels"])
