"""The page of a report: its numbers are those of the results and counters it is made of, and it looks right
in a browser."""

import re

import counted_by_hand
import pytest
from report_pages import FILE, HALVES, SIZES, Page, counters, made, made_up, swept, write_counters

from tir_schedules.bench.views import figures, short
from tir_schedules.cli.main import main
from tir_schedules.model.findings import Finding, Location
from tir_schedules.report import padding, page, recorded
from tir_schedules.subjects.results import save_results


@pytest.fixture
def results(tmp_path):
    """A folder with times of a rung, and JSON that is something else."""
    save_results(made_up.results("sgemm/naive", sizes=SIZES), tmp_path / "sgemm.json")
    (tmp_path / "other.json").write_text('{"kernels": []}')
    return tmp_path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with times of two ladders, counters, a sweep, and the page made of them with counters by
    hand."""
    folder = tmp_path_factory.mktemp("results")
    save_results(made_up.results("sgemm", sizes=SIZES), folder / "sgemm.json")
    save_results(made_up.results("hgemm", sizes=SIZES, **HALVES), folder / "hgemm.json")
    save_results(swept((0, 8)), folder / "sweeps.json")
    measured = {"sgemm/naive (tir)": 1000.0, "sgemm/naive (twin)": 1005.0, "sgemm/coalesced (tir)": 2000.0}
    entries = [counters(label, 1000, found) for label, found in measured.items()]
    write_counters(
        folder / "counters.json",
        "2041-01-02",
        [*entries, counters("sgemm/naive (tir)", 1, 2.0, probe="a load")],
    )
    write_counters(
        folder / "old_counters.json", "2041-01-01", [counters(label, 1000, 1.0) for label in measured]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "count", counted_by_hand.counted)
        patch.setattr(padding, "request_patterns", counted_by_hand.patterns)
        assert made(folder)[0] == 0
    return folder


@pytest.fixture(scope="module")
def shown(folder):
    return Page((folder / FILE).read_text())


def test_rates_in_the_page_are_those_recorded(shown):
    for family, options in {"sgemm": {}, "hgemm": HALVES}.items():
        table = shown.rows_of(f"{family}{' nt float16' if options else ''}: TFLOPS of the schedule")
        rows = made_up.results(family, sizes=SIZES, **options)["rows"]
        rates = {(row["name"], row["form"], row["workload"]["m"]): row["rate"] for row in rows}
        names = [name for name, form, size in rates if form == "schedule" and size == SIZES[0]]
        for name in names:
            assert table[short(name)] == [
                f"{figures(rates[name, 'schedule', size])} (1.01x)" for size in SIZES
            ]
        best = [
            max(rate for (_, form, size), rate in rates.items() if (form, size) == ("schedule", at))
            for at in SIZES
        ]
        assert table["best rung / cuBLAS"] == [
            f"{rate / rates['cuBLAS', 'vendor', size]:.2f}x" for rate, size in zip(best, SIZES)
        ]
        assert (
            set(names) == {f"{family}/{name}" for name in table if f"{family}/{name}" in names}
            and len(names) >= 10
        )
    assert all(part in shown.text() for part in ("Made-up GPU", "2041-02-03", "0123456789ab", "nvcc 13.0.88"))


def test_without_the_cpu_machine_the_page_says_what_is_left_out(results, monkeypatch, capsys):
    monkeypatch.setattr(page, "count", None)
    code, shown = made(results, "--quick")
    assert code == 0 and "report.html, 0." in capsys.readouterr().out
    assert all(
        said in shown.text()
        for said in ("made without the CPU machine", "No sweeps among the", "No counters of Nsight Compute")
    )


@pytest.mark.parametrize("at", [0, 1])
def test_a_limit_of_nothing_is_no_roof(tmp_path, at):
    document = made_up.results("sgemm/naive", sizes=SIZES)
    limits = [
        limit | {"rate": 0.0} if number == at else limit for number, limit in enumerate(document["limits"])
    ]
    save_results(document | {"limits": limits}, tmp_path / "a.json")
    assert made(tmp_path, "--quick")[0] == 0
    assert ("Roof:" in (tmp_path / FILE).read_text()) == bool(at)


def test_counters_in_the_page_are_those_counted(shown):
    table = shown.rows_of(
        "hgemm nt float16: schedule above, twin below; counted for 512x512x256 nt float16, compiled for sm_90"
    )
    # registers, shared bytes, blocks, warps held, loads, stores, cp.async, lost, sectors per request
    assert table["wmma_shared"] == [
        "64",
        "4,096",
        "4",
        "50%",
        "4,004",
        "4.00x",
        "202",
        "1.00x",
        "–",
        "",
        "3,003",
        "16.00",
        "4.00",
    ]
    assert table["wmma_padded"][1:9] == ["5,120", "4", "50%", "1,001", "1.00x", "404", "2.00x", "–"]


def test_the_example_says_what_padding_gains_and_costs(shown):
    rates = {
        row["name"]: row["rate"]
        for row in made_up.results("hgemm", sizes=SIZES, **HALVES)["rows"]
        if row["form"] == "schedule"
    }
    gained = [f"{figures(rates[name])} TFLOPS" for name in padding.LADDER]
    swept_rate = f"{figures(swept((0,))['rows'][0]['rate'])} TFLOPS"
    for said in (
        "the loads of wmma_shared:article_004 take 4,004 wavefronts, 4.00x the ideal 1,001",
        "wmma_padded:article_004 take 1,001 wavefronts, 1.00x the ideal",
        f"4096, padding takes wmma_shared:article_004 from {swept_rate} to {swept_rate}",
        f"and wmma_shared from {gained[0]} to {gained[1]}.",
        "stores take 404 wavefronts, 2.00x the ideal 202; without padding 1.00x",
        "with 1,000 requests against 200: 4,206 wavefronts in all become 1,405",
        "a block needs 5,120 bytes instead of 4,096, 25 % more",
        "Rows of 64 bytes start in 2 different banks",
        "Rows of 80 bytes start in 8",
    ):
        assert said in shown.text()


def test_the_article_s_table_of_banks(shown):
    table = shown.tables["Article 004's table of banks"]
    assert [row[2] for row in table[1:]] == [
        "0–3",
        "20–23",
        "8–11",
        "28–31",
        "16–19",
        "4–7",
        "24–27",
        "12–15",
    ]


def test_counters_measured_last_stand_beside_the_predicted_ones(shown):
    assert (
        "Of 3 launches, 1 have" in shown.text() and "shared loads, wavefronts: not explained" in shown.text()
    )
    assert shown.rows_of("Counters of Nsight")["shared loads, wavefronts"] == ["1", "1", "1", "50.0%"]
    assert shown.rows_of("Counters of Nsight")["global loads, sectors"] == ["3", "–", "–", "–"]
    assert shown.rows_of("sgemm: as measured")["coalesced (schedule)"][:2] == ["256x256x256", "1,000 → 2,000"]


def test_sweeps_are_drawn_and_listed(folder, shown):
    assert shown.tables["padding: as recorded; lost: wavefronts beyond the ideal"][1:] == [
        ["wmma_padded:article_004 on 4096x4096x4096 nt float16, schedule"],
        ["0", "100", "99", "12,345", "3", "63", "0"],
        ["2", "cannot: rows are misaligned"],
        ["8", "108", "99", "12,345", "3", "63", "0"],
    ]
    assert "time over padding" in (folder / FILE).read_text()


def test_plots_are_in_the_page_s_colours_and_keep_their_text(folder):
    pictures = [
        svg
        for svg in re.findall("<svg.*?</svg>", (folder / FILE).read_text(), re.S)
        if "matplotlib" in svg or "axes_1" in svg
    ]
    assert len(pictures) == 7
    for svg in pictures:
        assert not re.search("(fill|stroke): #", svg) and "<text" in svg and "var(--c1)" in svg


def test_a_page_that_cannot_be_written_is_refused_before_anything_slow(results, monkeypatch, capsys):
    monkeypatch.setattr(recorded, "find_recorded", None)
    assert main(["report", "-o", str(results / "no" / "report.html"), "--results", str(results)]) == 2
    assert "name a file in a folder that exists" in capsys.readouterr().err


def test_what_is_wrong_with_kernels_stands_in_the_page(results, monkeypatch, capsys):
    row = {
        "family": "sgemm",
        "name": "sgemm/naive",
        "form": "twin",
        "shape": "256x256x256",
        "reason": "nvcc objects",
    }
    race = Finding("race", "two warps write a word", "sgemm/naive (tir)", Location(7), (0, 0, 0), 0, 0)
    monkeypatch.setattr(
        page,
        "count",
        lambda jobs, arch: ([counted_by_hand.kernel_of(*jobs[0], "schedule", arch, (race,))], [row]),
    )
    code, shown = made(results)
    printed = capsys.readouterr().out
    assert code == 1
    for said in (
        "refused: sgemm/naive (twin) on 256x256x256: nvcc objects",
        "sgemm/naive (tir): race: two warps write a word",
    ):
        assert said in shown.text() and said in printed


def test_states_of_warps_are_in_the_page_where_they_are_asked_for(tmp_path, check_page, tool):
    found = made_up.results("sgemm/naive", sizes=SIZES)
    found["device"]["arch"] = "sm_90"
    save_results(found, tmp_path / "sgemm.json")
    code, shown = made(tmp_path, "--time")
    assert code == 0
    text = (tmp_path / FILE).read_text()
    assert text.count('<span class="bar"') == 2 and "What warps wait for" in text and "MIO throttle" in text
    check_page(tmp_path / FILE)
    assert "What warps wait for" not in (made(tmp_path), (tmp_path / FILE).read_text())[1]
    code, _, err = tool(
        "report", "--time", "--quick", "--results", str(tmp_path), "-o", str(tmp_path / "x.html")
    )
    assert code == 2 and "leave one out" in err


def test_the_page_looks_right_in_a_browser(folder, shown, check_page):
    check_page(folder / FILE)


@pytest.mark.slow
def test_the_example_of_real_kernels(tmp_path, check_page):
    save_results(made_up.results("hgemm", sizes=(1024,), **HALVES), tmp_path / "hgemm.json")
    code, shown = made(tmp_path)
    assert code == 0
    table = shown.rows_of("Schedules, counted for 512x512x256 nt float16")
    assert [table[short(name)][2] for name in padding.NAMES] == ["4.00x", "1.00x"] * 2 + ["1.00x"] * 2
    assert [table[short(name)][4] for name in padding.NAMES] == ["1.00x", "2.00x"] * 2 + ["1.00x"] * 2
    assert "By its banks a load takes 4 wavefronts and a copy 4 (ideal: 4 and 4)." in shown.text()
    check_page(tmp_path / "report.html")
