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
    fma, promoted, alone = map(rows_of, (precision.FMA, "bf16x6", "split_bf16"))
    assert len(fma) == len(precision.KINDS) * len(precision.LENGTHS)
    for case, row in fma.items():
        assert promoted[case]["rms"] < row["rms"] and promoted[case]["max"] < row["max"], case
    assert all(alone[kind, 4096]["rms"] > fma[kind, 4096]["rms"] for kind in precision.KINDS)


def test_another_file_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(BadInput, match="is not what split_precision.py -o wrote"):
        precision.recorded(tmp_path / "a.json")
