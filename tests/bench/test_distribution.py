"""Ratios on drawn shapes: what they come to, in results that are made up."""

import drawn_tables
import made_up
import pytest
import tables

from tir_schedules.bench import plots
from tir_schedules.bench.distribution import bars, compared, sentences, tables_of
from tir_schedules.bench.tables import print_results
from tir_schedules.cli import main as cli
from tir_schedules.errors import BadInput
from tir_schedules.subjects.results import check_results, load_results, save_results

SHAPES = {"64x64x64": "square", "128x128x128": "square", "256x256x256": "thin", "512x512x512": "odd"}
OURS = {
    "64x64x64": (30.0, 20.0),
    "128x128x128": (48.5, 50.0),
    "256x256x256": (100.0, 50.0),
    "512x512x512": (40.0, 40.0),
}
"""Rates of sgemm/naive and sgemm/coalesced; the better of the libraries has 40, 50, 50 and 50."""
VENDOR = {"64x64x64": 40.0, "128x128x128": 50.0, "256x256x256": 50.0, "512x512x512": 49.0}
"""Of cuBLAS."""


def drawn(date="2041", packed=False, **fields):
    """Results of two rungs on four drawn shapes. A fifth shape was drawn and not timed."""

    def rated(row):
        rates = {"sgemm/naive": OURS[row["shape"]][0], "sgemm/coalesced": OURS[row["shape"]][1]}
        rate = rates.get(row["name"], VENDOR[row["shape"]])
        return row | {"rate": rate, "median_us": 1000 / rate}

    results = made_up.results("sgemm/naive", "sgemm/coalesced", sizes=(64, 128, 256, 512), change=rated)
    results = made_up.with_cublaslt(results, {64: 40.0, 128: 45.0, 256: 20.0, 512: 50.0})
    note = {"shapes": 5, "seed": 7, "kinds": SHAPES} | fields
    return results | {"date": date} | ({"packed": {"drawn": note}} if packed else {"drawn": note})


CHOSEN = {
    "chosen": dict.fromkeys(SHAPES, "sgemm/naive"),
    "estimated": {"64x64x64": {"sgemm/naive": 50.0, "sgemm/coalesced": 50.0}},
    "rule": "two that were named",
}


def shapes_of(results):
    return compared(results)["sgemm"]


@pytest.mark.parametrize("packed", (False, True))
def test_the_fastest_schedule_counts_where_no_choice_is_known(packed):
    shapes = shapes_of(drawn(packed=packed))
    assert [one.kind for one in shapes] == ["square", "square", "thin", "odd"]
    assert [round(one.ratio, 4) for one in shapes] == [0.75, 1.0, 2.0, 0.8]
    assert [one.regret for one in shapes] == [0, 0, 0, 0] and not any(one.errors for one in shapes)
    assert compared(made_up.results("sgemm/naive")) == {}


def test_what_was_chosen_counts_where_that_is_known():
    shapes = shapes_of(drawn(**CHOSEN))
    assert [round(one.ratio, 4) for one in shapes] == [0.75, 0.97, 2.0, 0.8]
    assert [round(one.regret, 4) for one in shapes] == [0, 0.0309, 0, 0]
    assert shapes[1].name == "sgemm/naive" and shapes[1].best == "sgemm/coalesced"
    assert shapes[0].errors == (0.5, 0.0)


def test_of_candidates_the_fastest_counts_and_the_choice_is_told_beside_it():
    results = drawn(chosen=CHOSEN["chosen"], candidates=2)
    shapes = shapes_of(results)
    assert [round(one.ratio, 4) for one in shapes] == [0.75, 1.0, 2.0, 0.8]
    assert shapes[1].name == shapes[1].best == "sgemm/coalesced" and shapes[1].chosen == "sgemm/naive"
    best, chosen, regret = sentences("sgemm", shapes, results["drawn"])
    lost = drawn(chosen=dict.fromkeys(SHAPES, "sgemm/tma"), candidates=2)  # it was refused
    assert [round(one.ratio, 4) for one in shapes_of(lost)] == [0.75, 1.0, 2.0, 0.8]
    assert len(sentences("sgemm", shapes, results["drawn"] | {"candidates": 1})) == 1
    assert best.startswith(
        "sgemm: 4 shapes drawn by seed 7 (1 not timed): the fastest of up to 2 candidates at each is 1.047x"
    )
    assert chosen == (
        "what is chosen of sgemm without timing at the same shapes: 1.039x the best of cuBLAS in the"
        " geometric mean, lowest 0.750x (at 64x64x64), 3 below 1x, 2 below 0.97x"
    )
    assert regret.endswith("naive chosen, coalesced best); timed were the candidates")


def test_a_shape_that_leaves_products_open_is_that_of_the_rungs_that_were_timed():
    kinds = {f"{shape} emulated": kind for shape, kind in SHAPES.items()}
    chosen = {f"{shape} emulated": name for shape, name in CHOSEN["chosen"].items()}
    shapes = shapes_of(drawn(kinds=kinds, chosen=chosen, candidates=2))
    assert [one.shape for one in shapes] == [*SHAPES] and [one.kind for one in shapes] == [*SHAPES.values()]
    assert [round(one.ratio, 4) for one in shapes] == [0.75, 1.0, 2.0, 0.8]


def test_a_choice_that_was_not_timed_is_left_out():
    results = drawn(**CHOSEN | {"chosen": {"64x64x64": "sgemm/tma"}})
    assert [one.shape for one in shapes_of(results)] == ["128x128x128", "256x256x256", "512x512x512"]


def test_sentences_say_what_ratios_regrets_and_errors_come_to():
    results = drawn(**CHOSEN)
    told = sentences("sgemm", shapes_of(results), results["drawn"])
    assert told == [
        "sgemm: 4 shapes drawn by seed 7 (1 not timed): 1.039x the best of cuBLAS in the geometric mean,"
        " lowest 0.750x (at 64x64x64), 3 below 1x, 2 below 0.97x",
        "regret: mean 0.8%, worst 3.1% (at 128x128x128: naive chosen, coalesced best); timed were two that"
        " were named",
        "estimates of 2 schedules are off by 25.0% in the median, 50% at most",
    ]
    assert len(sentences("sgemm", shapes_of(drawn()), drawn()["drawn"])) == 1


def test_tables_have_kinds_a_histogram_and_the_lowest():
    kinds, histogram, lowest = tables_of("sgemm", shapes_of(drawn()))
    assert kinds[1] == [
        ("square", "2", "0.87x", "1", "1", "0.750x"),
        ("thin", "1", "2.00x", "0", "0", "2.000x"),
        ("odd", "1", "0.80x", "1", "1", "0.800x"),
        ("all", "4", "1.05x", "2", "2", "0.750x"),
    ]
    found = {name: (count, bar) for name, count, bar in histogram[1]}
    assert found["below 0.80x"] == found["1.00x to 1.03x"] == found["2.00x and above"] == ("1", "#")
    assert found["0.97x to 1.00x"] == ("0", "") and sum(int(count) for count, _ in found.values()) == 4
    assert [line[0] for line in lowest[1]][:2] == ["64x64x64", "512x512x512"]
    *_, regrets = tables_of("sgemm", shapes_of(drawn(**CHOSEN)))
    assert regrets[1][0] == ("128x128x128", "square", "naive", "coalesced", "3.1%")


def test_a_ratio_on_an_edge_belongs_to_the_bar_above():
    assert dict(bars(shapes_of(drawn())))["0.80x to 0.90x"] == 1


def test_bench_shows_and_draws_the_distribution(tmp_path, capsys):
    save_results(drawn(**CHOSEN), tmp_path / "a.json")
    assert load_results(tmp_path / "a.json")["drawn"]["seed"] == 7
    assert cli.main(["bench", "--from", str(tmp_path / "a.json"), "--plot", str(tmp_path / "a.svg")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "sgemm: 4 shapes drawn by seed 7 (1 not timed): 1.039x" in out and "rate / best of cuBLAS" in out
    text = (tmp_path / "a.svg").read_text()
    assert "4 shapes drawn for sgemm on Made-up GPU" in text and "shapes, lowest ratio first" in text
    assert plots.save_plots(drawn(), tmp_path / "b.png") == [tmp_path / "b.png"]


def test_results_without_drawn_shapes_are_shown_without(capsys):
    print_results(made_up.results("sgemm/naive", sizes=(64,)))
    assert "drawn" not in capsys.readouterr().out


@pytest.mark.parametrize("wrong, message", [
    ({"seed": -1}, "seed"),
    ({"candidates": 0}, "candidates"),
    ({"kinds": {"64x64x64": 5}}, "kinds"),
    ({"estimated": {"64x64x64": {"sgemm/naive": "fast"}}}, "estimated"),
])  # fmt: skip
def test_what_files_say_of_drawn_shapes_is_checked(wrong, message, tmp_path):
    with pytest.raises(BadInput, match=f"drawn.*{message}"):
        check_results(drawn(**wrong), tmp_path / "a.json", "Results")


def test_readmes_have_the_newest_distribution_and_the_chosen_shapes_before_there_is_one(tmp_path):
    page = tmp_path / "README.md"
    markers = ("headline: sgemm", "drawn: sgemm", "regret: sgemm")
    page.write_text("".join(f"<!-- {marker} -->\n<!-- end -->\n" for marker in markers))
    save_results(made_up.results("sgemm/naive", sizes=(64, 128)), tmp_path / "shapes_sgemm.json")

    def written():
        assert tables.update_all([page], tmp_path, check=False) == 0
        assert tables.update_all([page], tmp_path, check=True) == 0
        return page.read_text()

    text = written()
    assert "- sgemm, chosen by hand, 2 shapes: " in text
    assert "No drawn shapes of sgemm were timed yet." in text
    assert "No recording of drawn shapes of sgemm has other configurations beside the choice." in text
    save_results(drawn("2042"), tmp_path / "drawn_b.json")
    save_results(
        drawn("2041") | {"drawn": {"shapes": 9, "seed": 1, "kinds": SHAPES}}, tmp_path / "drawn_c.json"
    )
    save_results(drawn("2040", **CHOSEN), tmp_path / "regret_a.json")
    text = written()
    assert "chosen by hand" not in text and "No drawn shapes" not in text
    assert text.count("- sgemm: 4 shapes drawn by seed 7 (1 not timed): 1.047x") == 2
    assert "| all | 4 | 1.05x | 2 | 2 | 0.750x |" in text and "seed 1" not in text
    assert "| 128x128x128 | square | naive | coalesced | 3.1% |" in text and "- regret: mean 0.8%" in text
    save_results(drawn("2043", chosen=CHOSEN["chosen"], candidates=2), tmp_path / "drawn_d.json")
    text = written()
    assert text.count("; what is chosen of sgemm without timing at the same shapes: 1.039x") == 1
    assert text.count("- what is chosen of sgemm without timing at the same shapes: 1.039x") == 1


def test_a_ladder_that_is_not_among_the_drawn_has_none():
    assert drawn_tables.newest("hgemm", [drawn()]) is None
