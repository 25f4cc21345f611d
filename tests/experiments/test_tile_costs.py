"""experiments/tile_costs.py: what is timed, and the table that is made of it."""

import json

import pytest
import tile_costs

from tir_schedules.ladders.hgemm import hopper

FORM = (128, 2, 0, 192)


@pytest.fixture
def script(calling):
    return calling(tile_costs.main)


def result(path, cycles, deep=100.0, more=()):
    """Times of 128x192 alone: `deep` cycles once, and so many for each K tile."""
    rows = [
        {
            "name": "hgemm/tile_shapes:bm=128,bn=192,consumers=2,stages=4",
            "workload": {"m": 11 * 128, "n": 12 * 192, "k": depth},
            "in_turns_us": (deep + cycles * -(-depth // hopper.DEPTH)) / 1000,
            "in_turns_mhz": 1000.0,
        }
        for depth in (*tile_costs.DEPTHS, *more)
    ]
    path.write_text(json.dumps({"device": {"name": "GPU"}, "date": "2026-01-01", "rows": rows}))
    return path


def test_the_table_in_the_package_is_what_was_recorded(script):
    assert script("--check") == (0, "", "")


def test_what_comes_once_is_not_counted(tmp_path):
    for once in (0.0, 5000.0):
        found = tile_costs.table_of([json.loads(result(tmp_path / "a.json", 768.0, once).read_text())])
        (form,) = found["forms"]
        assert (form["rows"], form["columns"], form["once"]) == (128, 192, {"alone": 768.0})


def test_another_table_is_seen(tmp_path, script):
    code, out, err = script("--from", result(tmp_path / "a.json", 700.0), "--check")
    assert (code, out) == (1, "") and "tile_costs.json is not what the results say" in err


def test_rows_that_are_odd_stand_beside_whole_lines(tmp_path):
    odd = tile_costs.DEPTHS[1] + tile_costs.ODD[16]
    recorded = json.loads(result(tmp_path / "a.json", 768.0, more=[odd]).read_text())
    assert [*tile_costs.odd_rows([recorded])] == [("128x192", "alone", "1", "768", "779", "0", "0")]


def test_all_that_was_recorded_is_shown_where_the_table_has_its_way():
    recorded = [json.loads(path.read_text()) for path in tile_costs.RECORDED]
    shown = {row[:2] for row in tile_costs.odd_rows(recorded)}
    assert {("128x128", "rows and columns shared"), ("128x256", "alone")} < shown


def test_all_forms_are_timed_in_every_way_at_two_depths():
    cases = [*tile_costs.cases()]
    timed = {(config.tall, config.consumers, config.part_columns, config.wide) for config, _ in cases}
    assert timed == {(*kind, wide) for kind, columns in tile_costs.COLUMNS.items() for wide in columns}
    own = [
        (config.swap, config.blocks, gemm.k)
        for config, gemm in cases
        if tile_costs.tile_costs.form_of(config) == FORM
    ]
    assert len(own) == 2 * (len(tile_costs.ONCE) + len(tile_costs.AGAIN))


@pytest.mark.parametrize(
    "asked, said",
    [
        ([], "say --pack FILE.zip, --from RESULT.json or --check"),
        (["--from", "missing.json"], "missing.json"),
    ],
)
def test_what_cannot_be_is_one_line(asked, said, script):
    code, out, err = script(*asked)
    assert (code, out, err.count("\n")) == (2, "", 1) and said in err


def test_results_of_something_else_are_refused(tmp_path, script):
    (tmp_path / "a.json").write_text(json.dumps({"rows": []}))
    code, _, err = script("--from", tmp_path / "a.json")
    assert code == 2 and "they are to be those of a pack of tile_costs.py" in err
