"""Errors of products of parts: recorded, reproduced, and what they say."""

import pytest
import split_precision as precision

from tir_schedules.errors import BadInput

ROWS = precision.recorded(precision.RECORDED)


def rows_of(rung):
    return {(row["kind"], row["k"]): row for row in ROWS if row["rung"] == rung}


def test_the_table_is_what_was_recorded(tmp_path):
    assert precision.main(["--check"]) == 0
    changed = tmp_path / "README.md"
    changed.write_text(precision.table(ROWS, 64).replace("uniform", "even"))
    changed.write_text(f"<!-- precision: 64 -->\n{changed.read_text()}<!-- end -->")
    assert precision.main(["--check", "--readme", str(changed)]) == 1
    assert precision.main(["--plot", str(tmp_path / "a.svg")]) == 0
    assert "positive" in (tmp_path / "a.svg").read_text() or (tmp_path / "a.svg").stat().st_size > 1000


def test_the_machine_says_so_again():
    """A short one, to the last digit."""
    again = [row for row in precision.measured([64]) if row["rung"] != precision.FMA]
    assert again == [row for row in ROWS if row["k"] == 64 and row["rung"] != precision.FMA]


def test_promoted_sums_beat_fma_and_others_do_not():
    fma, alone = map(rows_of, (precision.FMA, "split_bf16"))
    assert len(fma) == len(precision.KINDS) * len(precision.LENGTHS)
    for case, row in fma.items():
        for promoted in map(rows_of, ("bf16x6", "bf16x6_mma", "bf16x6_fused")):
            assert promoted[case]["rms"] < row["rms"] and promoted[case]["max"] < row["max"], case
    assert all(alone[kind, 4096]["rms"] > fma[kind, 4096]["rms"] for kind in precision.KINDS)


def test_rates_are_those_of_bench_and_less_accurate_peers_are_left_out():
    rates = {"bf16x6": {4096: 125.0}, "cuBLAS": {4096: 52.0}}
    peers = [
        {"name": name, "size": 4096, "tflops": 47.5, "rms": rms}
        for name, rms in (
            ("cuBLAS", 3e-8),
            ("cuBLAS TF32", 7e-6),
            ("Triton good", 5e-9),
            ("Triton bad", 1e-7),
        )
    ]
    text = precision.beside_rates(ROWS, rates, peers, 4096)
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ") for line in text.splitlines()}
    assert cells["bf16x6"][-1] == "125" and cells["cuBLAS"][-1] == "52" and "fp16x3_mma" not in cells
    assert cells["cuBLAS TF32"][-1] == cells["Triton good"][-1] == "47.5" and "Triton bad" not in cells


def test_another_file_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(BadInput, match="is not what split_precision.py or split_peers.py wrote"):
        precision.recorded(tmp_path / "a.json")
