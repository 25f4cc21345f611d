"""The notebook runs from top to bottom without a GPU, in a kernel of its own."""

from pathlib import Path

import pytest

TOUR = Path(__file__).parents[2] / "experiments" / "tour.ipynb"


def said(cell):
    """What a cell shows, as text."""
    return "\n".join(one.get("text", "") or one.get("data", {}).get("text/html", "") for one in cell.outputs)


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    needs = "the notebook is run with nbclient and ipykernel: pip install -e '.[test]'"
    nbclient = pytest.importorskip("nbclient", reason=needs)
    pytest.importorskip("ipykernel", reason=needs)
    import nbformat

    read = nbformat.read(TOUR, as_version=4)
    nbformat.validate(read)
    assert not any(cell.get("outputs") for cell in read.cells), "outputs are not kept in the file"
    place = {"metadata": {"path": str(tmp_path_factory.mktemp("tour"))}}
    return nbclient.NotebookClient(read, timeout=600, resources=place).execute()


def test_the_tour_shows_what_its_words_say(tour):
    cells = [cell for cell in tour.cells if cell.cell_type == "code"]
    shown = {beginning: next(said(cell) for cell in cells if cell.source.startswith(beginning))
             for beginning in ("ts.run", "broken", "mended", "ts.inspect", "ts.time", "lesson")}  # fmt: skip
    assert "2 of 2 verified" in shown["ts.run"]
    assert "race: " in shown["broken"] and "FAIL" in shown["broken"]
    (printed,) = (cell.outputs for cell in cells if cell.source.startswith("broken"))
    assert {one.output_type for one in printed} == {"stream"}, "str of a result is all of its text"
    assert "pass" in shown["mended"] and "race" not in shown["mended"]
    assert "16.5" in shown["ts.inspect"] and "2.5" in shown["ts.inspect"]
    assert "nothing was timed" in shown["ts.time"]
    assert "MISSING  right" in shown["lesson"] and "out_of_bounds" in shown["lesson"]
