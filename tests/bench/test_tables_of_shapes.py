"""Tables with a line for each shape, and the shapes."""

import made_up
import many_shapes
import pytest
import rung_tables
import tables

from tir_schedules.errors import BadInput


def test_a_line_has_the_fastest_schedule_and_the_vendor():
    rates = {"sgemm/naive": 50.0, "sgemm/coalesced": 60.0, "cuBLAS": 40.0}
    results = made_up.results(
        "sgemm/naive",
        "sgemm/coalesced",
        sizes=(64, 128),
        change=lambda row: {**row, "rate": rates[row["name"]] * (2 if row["form"] == "twin" else 1)},
    )
    results["rows"] = [row for row in results["rows"] if row["name"] != "cuBLAS" or "128" in row["shape"]]
    text = tables.section("sgemm", [results], {}, tables.by_shape)
    found = [line for line in text.splitlines() if line.startswith(("| 1", "| 6"))]
    assert found == ["| 128 | coalesced | 60.0 | 40.0 | 1.50x |"]
    assert text.endswith("- 1 shapes: 1.500x in the geometric mean, lowest 1.50x (at 128), 0 below 1x.")


def rated(date, *rates, **fields):
    """A recording of sgemm/naive at 64 and 128, with these rates, and of cuBLAS with 50."""
    ours = dict(zip(("64x64x64", "128x128x128"), rates))
    results = made_up.results(
        "sgemm/naive",
        sizes=(64, 128),
        change=lambda row: row | fields | {"rate": ours[row["shape"]] if row["form"] == "schedule" else 50.0},
    )
    return results | {"date": date, "device": {"name": "Made-up GPU", "uuid": f"GPU-{date}-and-so-on"}}


def test_a_second_run_stands_beside_the_first():
    text = tables.section(
        "sgemm", [rated("2041", 40.0, 60.0), rated("2042", 50.0, 60.6)], {}, tables.by_shape
    )
    assert "| 64 | naive | 50.0 | 50.0 | 1.00x | 0.80x |" in text and "| 1.21x | 1.20x |" in text
    assert text.index("GPU-2042-and") < text.index("GPU-2041-and")
    assert text.endswith("1 of 2 ratios agree within 2%; farthest apart are 1.000x and 0.800x at 64.")


def of_three_rungs(date, **rates):
    """A recording of rungs of SGEMM at 64, where no rate is said 10."""
    names = [f"sgemm/{name}" for name in ("naive", "coalesced", "shared_tile")]
    results = made_up.results(
        *names, sizes=(64,), change=lambda row: row | {"rate": rates.get(row["name"].partition("/")[2], 10.0)}
    )
    return results | {"date": date, "device": {"name": "Made-up GPU", "uuid": f"GPU-{date}-and-so-on"}}


def test_a_rung_far_behind_the_one_before_it_is_bold_and_has_its_reason(monkeypatch):
    monkeypatch.setitem(rung_tables.REASONS, "shared_tile", "it was made up")
    text = tables.section("sgemm", [of_three_rungs("2041", shared_tile=4.9)], {}, tables.every_rung)
    assert "| 64 | 10.0 | 10.0 | **4.90** |" in text
    assert text.endswith("- `shared_tile` has 0.49 of the rung before it at 64: it was made up.")
    text = tables.section("sgemm", [of_three_rungs("2041", shared_tile=5.1)], {}, tables.every_rung)
    assert "| 64 | 10.0 | 10.0 | 5.10 |" in text and "made up." not in text


def test_a_rung_far_behind_without_a_reason_is_refused():
    with pytest.raises(BadInput, match="coalesced has less than half the rate of the rung before it at 64"):
        tables.section("sgemm", [of_three_rungs("2041", coalesced=4.0)], {}, tables.every_rung)


def test_what_was_timed_again_takes_the_place_of_what_was():
    again = of_three_rungs("2042", coalesced=12.0)
    again["rows"] = [row for row in again["rows"] if row["name"] == "sgemm/coalesced"]
    text = tables.section("sgemm", [of_three_rungs("2041", coalesced=4.0), again], {}, tables.every_rung)
    assert "| 64 | 10.0 | 12.0 | 10.0 |" in text and "GPU-2041" in text and "GPU-2042" in text


def test_pauses_are_worth_what_the_table_says():
    paused = rated("2041", 40.0, 60.0, clock_mhz=1980.4, power_w=300.0)
    sustained = rated("2042", 30.0, 60.0, clock_mhz=1500.0, power_w=699.6)
    sustained["policy"] = {"sustained": True}
    for order in ([paused, sustained], [sustained, paused]):
        text = tables.section("sgemm", order, {}, tables.with_and_without_pauses)
        assert "| naive, 64 | 40.0 | 1980 | 300 | 30.0 | 1500 | 700 | 0.75x |" in text
        assert "| cuBLAS, 128 | 50.0 | 1980 | 300 | 50.0 | 1500 | 700 | 1.00x |" in text


@pytest.mark.parametrize("draw, message", [
    (tables.with_and_without_pauses, "need a recording with `bench --sustained` and one without"),
    (tables.by_shape, "none was timed"),
])  # fmt: skip
def test_what_a_table_lacks_is_said(draw, message):
    recording = rated("2041", 40.0, 60.0)
    recording["rows"] = [row for row in recording["rows"] if row["name"] != "cuBLAS"]
    with pytest.raises(BadInput, match=message):
        tables.section("sgemm", [recording], {}, draw)


def test_thirty_shapes_and_always_the_same():
    shapes = many_shapes.shapes()
    assert len(set(shapes)) == 30 and shapes[-1] == (220, 639, 1015)
