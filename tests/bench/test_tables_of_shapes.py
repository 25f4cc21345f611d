"""Tables with a line for each shape, and the shapes."""

import made_up
import many_shapes
import tables


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
    assert text.endswith("- 1 shapes: 1.500x in the geometric mean, lowest 1.50x.")


def test_thirty_shapes_and_always_the_same():
    shapes = many_shapes.shapes()
    assert len(set(shapes)) == 30 and shapes[-1] == (220, 639, 1015)
