"""The articles' figures agree with each other where they can; their tables beside what was measured; the
script as users call it."""

import re
from dataclasses import replace
from math import log2
from pathlib import Path
from types import SimpleNamespace

import articles
import made_up
import pytest
from article_tables import NOTHING, TABLES, roof_of, section

from tir_schedules.bench import session, vendor
from tir_schedules.bench.measure import Policy
from tir_schedules.ladders.registry import find
from tir_schedules.subjects.packs import load_pack
from tir_schedules.subjects.results import document, load_results, save_results
from tir_schedules.subjects.subject import VENDORS, Subject

REDUCE, SGEMM_T4, SGEMM_1080TI, HGEMM = (TABLES[name] for name in ("002", "003", "000", "001"))
ROOT = Path(__file__).parents[2]

# Rows of the articles' tables as their text has them: the columns have run together.
PRINTED = {
    "reduce/divergent": "3118.442.503~",
    "reduce/interleaved": "1904.473.5221.64",
    "reduce/sequential": "1475.297.5362.29",
    "reduce/first_add": "758.38189.784.11",
    "reduce/unrolled_warp:article": "484.01287.256.44",
    "reduce/unrolled:article": "477.23291.776.53",
    "sgemm/naive": "95.5152724.39628424228681",
    "sgemm/shared_tile:article_000": "40.5293198.3748245.6859048.4",
    "sgemm/thread_tile_1d:article_000": "35.215174.731894.7795880.03",
    "sgemm/thread_tile_2d:article_000": "34.70892.946557.8293509.920",
    "sgemm/transposed:article": "36.56790.745427.7012901.475",
    "sgemm/warp_tiling:article": "25.07165.810361.4332651.449",
}


@pytest.mark.parametrize("step", [*REDUCE.steps, *SGEMM_1080TI.steps], ids=lambda step: step.rung)
def test_figures_are_the_digits_of_the_article(step):
    assert "".join((*step.figures, *step.also)) == PRINTED[step.rung]


def test_times_and_bandwidths_of_002_can_be_split_in_one_way():
    for step in REDUCE.steps:
        here = (step.figures[0], step.also[0])
        digits, product = "".join(here), float(here[0]) * float(here[1])
        ways = [(digits[:cut], digits[cut:]) for cut in range(1, len(digits))]
        others = [way for way in ways if way != here and all(re.fullmatch(r"\d+\.\d+", one) for one in way)]
        ratios = [float(time) * float(bandwidth) / product for time, bandwidth in others]
        assert others and not [ratio for ratio in ratios if 0.5 < ratio < 4]  # what the note says


def test_times_of_000_grow_as_its_note_says():
    steps = [list(map(float, step.figures)) for step in SGEMM_1080TI.steps]
    first, second, *others = [times[2] / times[1] for times in steps]
    said = (
        f"{first:.0f} and {second:.0f} times as long at 1024 as at 512, for 8 times the work, and the others"
    )
    said += f" {min(others):.1f} to {max(others):.0f} times"
    assert len([note for note in SGEMM_1080TI.notes if said in note]) == 1


def test_bandwidth_times_time_is_the_sum_of_some_2_to_the_25_integers():
    moved = [float(step.also[0]) * 1e9 * float(step.figures[0]) / 1e6 for step in REDUCE.steps]
    assert 132.5e6 < min(moved) < max(moved) < 144e6  # what the note says
    assert {round(log2(size / 4)) for size in moved} == {25} and max(moved) / min(moved) > 1.08


def test_the_speed_ups_of_002_are_ratios_of_times_but_for_one_that_is_of_bandwidths():
    first = REDUCE.steps[0]
    times = {step.also[1]: float(first.figures[0]) / float(step.figures[0]) for step in REDUCE.steps[1:]}
    assert [printed for printed, ratio in times.items() if abs(float(printed) - ratio) > 0.006] == ["2.29"]
    assert f"{times['2.29']:.2f}" == "2.11"
    assert float(REDUCE.steps[2].also[0]) / float(first.also[0]) == pytest.approx(2.29, abs=0.005)


def test_the_figures_of_000_are_microseconds_that_a_1080_ti_can_reach():
    for step in SGEMM_1080TI.steps:
        for size, figure in zip(SGEMM_1080TI.sizes, step.figures):
            assert 0.05 < SGEMM_1080TI.workload(size).flops / float(figure) / 1e6 < 11.3  # TFLOPS, its peak


def test_a_table_says_what_the_articles_gpu_can_do():
    assert roof_of(TABLES["003"]) == (
        " A T4 has 8.1 TFLOPS and 320 GB/s by its datasheet; the best figure at 4096 is 0.750 TFLOPS, 9 % of"
        " that peak."
    )
    assert "at 2048 is 6.48 TFLOPS, 57 %" in roof_of(TABLES["000"])  # 2 * 2048^3 in 2651 us
    assert "8192 is 61.0 TFLOPS, 101 %" in roof_of(TABLES["001"]) and roof_of(TABLES["002"]) == ""


def test_the_first_two_steps_of_000_grow_faster_than_their_work_from_512_to_1024():
    growth = [float(step.figures[2]) / float(step.figures[1]) for step in SGEMM_1080TI.steps]
    assert [f"{ratio:.0f}" for ratio in growth[:2]] == ["39", "42"]  # what the note says
    assert all(4.5 < ratio < 6.5 for ratio in growth[2:])


def test_every_step_is_a_rung_with_a_figure_or_none_for_each_size():
    jobs = articles.jobs_of(list(TABLES.values()))
    assert len(jobs) == len({(rung.id, workload) for rung, workload in jobs}) == 6 + 6 + 4 * 6 + 2
    for article in TABLES.values():
        assert all(
            len(step.figures) == len(article.sizes) and len(step.also) == len(article.also)
            for step in article.steps
        )
    assert {str(HGEMM.workload(size)) for size in HGEMM.sizes} == {
        "4096x4096x4096 nt float16",
        "8192x8192x8192 nt float16",
    }


def test_rungs_have_the_tiles_of_the_articles():
    """Tiles of 003 are 32 deep, threads have 4 elements, then 4x4; those of 000 are 64x64 and 8 deep, threads
    have 8 elements, then 8x8, in the end 4x4 in each of two sub-tiles."""

    def tiles(article):
        configs = [find(step.rung)[0].config for step in article.steps]
        return [(tile.bm, tile.bn, tile.bk, tile.tm, tile.tn) for tile in configs if hasattr(tile, "tm")]

    assert tiles(SGEMM_T4) == [(32, 128, 32, 1, 4), *2 * [(128, 128, 32, 4, 4)]]
    assert tiles(SGEMM_1080TI) == [(64, 64, 8, 8, 1), *2 * [(64, 64, 8, 8, 8)], (64, 64, 8, 4, 4)]
    warps = find(SGEMM_1080TI.steps[-1].rung)[0].config
    assert (warps.wm, warps.wn, warps.wmiter, warps.wniter) == (32, 32, 2, 1)


def results_of(*shown, refuse=(), **facts):
    """A results document of articles whose steps take 100, 50, 25, ... microseconds, twins twice and
    libraries a tenth of that."""
    rows, refused = [], []
    for article in shown:
        for workload in map(article.workload, article.sizes):
            for number, step in enumerate(article.steps):
                for form, factor in (("schedule", 1), ("twin", 2)):
                    subject = Subject(article.family, step.rung, form, workload)
                    if subject.label in refuse:
                        refused.append(subject.refused("C[0, 0] is nan"))
                    else:
                        rows.append(made_up.row_of(subject, 100.0 * factor / 2**number, **facts))
            rows.append(
                made_up.row_of(Subject(article.family, VENDORS[article.family], "vendor", workload), 10.0)
            )
    measurement = SimpleNamespace(
        rows=rows, refused=refused, limits=made_up.LIMITS, notes=[], device=made_up.DEVICE
    )
    return document(made_up.SOURCE, measurement, {}, [])


def line_of(text, start):
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return [cell.strip() for cell in line.strip("| ").split("|")]


def test_a_table_of_times_has_both_gains_over_the_step_before_and_bandwidths():
    text = section("002", results_of(REDUCE))
    heads = ["step, 2^25", "rung", "article, us", "article, GB/s", "article, speed-up", "gain"]
    here = ["Made-up GPU, us", "its twin", "Made-up GPU, GB/s", "gain"]
    assert line_of(text, "| step") == heads + here
    first = [
        "baseline, divergent branches",
        "divergent",
        "3118.4",
        "42.503",
        "~",
        "-",
        "100",
        "200",
        "1342",
        "-",
    ]
    assert line_of(text, "| baseline") == first
    # 1904.4 / 1475.2; 4 x 2^25 bytes in 25 us
    third = [
        "bank conflicts removed",
        "sequential",
        "1475.2",
        "97.536",
        "2.29",
        "1.29x",
        "25.0",
        "50.0",
        "5369",
        "2.00x",
    ]
    assert line_of(text, "| bank") == third
    assert "| NVIDIA's library | CUB |  |  |  |  | 10.0 |  | 13422 |" in text
    assert (
        "- Here: Made-up GPU, driver 1.2.3, SM clock 1975 to 1980 MHz, CUDA 13.0.88" in text
        and "fp32 peak 66.9" in text
    )
    assert "2.11" in text and text.count("| step") == 1


def test_a_table_of_rates_gains_where_rates_grow_and_has_nothing_where_the_article_has_nothing():
    text = section("003", results_of(SGEMM_T4))
    assert line_of(text, "| kernel 2")[2:4] == ["499.3", "8.21x"]
    assert line_of(text, "| 1D")[2:4] == ["-", "-"] and line_of(text, "| kernel 4")[2:4] == ["-", "-"]
    gflops = 2 * 4096**3 / 50e-6 / 1e9
    assert line_of(text, "| kernel 2")[4:] == [f"{gflops:.0f}", f"{gflops / 2:.0f}", "2.00x"]


def test_an_article_with_several_sizes_has_a_table_for_each():
    text = section("000", results_of(SGEMM_1080TI))
    assert re.findall(r"^\| step, (\d+) \|", text, re.M) == ["256", "512", "1024", "2048"]
    assert line_of(text.split("| step, ")[4], "| warp")[2:4] == ["2651.449", "1.09x"]
    tera = f"{2 * 8192**3 / 100e-6 / 1e12:.0f}"
    assert line_of(section("001", results_of(HGEMM)).split("| step, ")[2], "| stripes")[2:5] == [
        "61",
        "-",
        tera,
    ]


def test_what_was_refused_or_throttled_is_said():
    label = "reduce/sequential (schedule)"
    text = section("002", results_of(REDUCE, refuse=[label], throttled=["power cap"]))
    assert (
        line_of(text, "| bank")[6:] == ["refused", "50.0\\*", "refused", "-"]
        and line_of(text, "| idle")[-1] == "-"
    )
    assert f"- refused: {label} on 33554432 int32: C[0, 0] is nan" in text
    assert "- \\* the GPU lowered its clock while this was timed: power cap" in text


def test_what_was_not_measured_is_said():
    results = results_of(SGEMM_T4)
    assert "Not measured" not in section("003", results)
    results["rows"] = [
        row for row in results["rows"] if row["name"] not in ("sgemm/naive", "sgemm/vectorized")
    ]
    assert "- Not measured yet: naive, vectorized.\n" in section("003", results)


def test_an_article_shows_nothing_of_the_others():
    results = results_of(SGEMM_T4, SGEMM_1080TI)
    slow = Subject("sgemm", "sgemm/pipelined", "twin", SGEMM_T4.workload(4096))
    results["rows"].append(made_up.row_of(slow, 1.0, throttled=["power cap"], sm_mhz=[5, 6]))
    assert section("003", results) == section("003", results_of(SGEMM_T4))
    assert section("002", results) == section("002", None) == NOTHING


@pytest.fixture
def call(calling):
    """Calls the script."""
    return calling(articles.main)


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "recorded.json"
    save_results(results_of(REDUCE), path)
    return path


def test_what_was_recorded_can_be_shown(call, recorded):
    code, out, _ = call("--from", recorded)
    assert code == 0 and re.search(
        r"bank conflicts removed +sequential +1475.2 +97.536 +2.29 +1.29x +25.0 +50.0 +5369 +2.00x",
        out,
    )
    assert "Article 002" in out and "Article 003" not in out
    assert call("003", "--from", recorded)[1] == ""


def test_sections_of_a_readme_are_written_and_checked(call, recorded, tmp_path):
    readme, options = tmp_path / "R.md", ("--from", recorded, "--readme", tmp_path / "R.md")
    stale = (
        "before\n<!-- article: 002 -->\nold\n<!-- end -->\nbetween\n<!-- article: 003 -->\n<!-- end"
        " -->\nafter\n"
    )
    readme.write_text(stale)
    assert call("--check", *options)[0] == 1 and readme.read_text() == stale
    assert call("--write", *options)[0] == 0
    text = readme.read_text()
    parts = [
        f"<!-- article: {name} -->\n\n{section(name, results_of(REDUCE))}\n\n<!-- end -->\n"
        for name in ("002", "003")
    ]
    assert text == f"before\n{parts[0]}between\n{parts[1]}after\n"
    assert (
        call("--check", *options)[0] == 0 and call("--write", *options)[0] == 0 and readme.read_text() == text
    )


def test_the_readme_of_the_experiments_is_what_was_recorded(call):
    assert call("--check")[0] == 0
    readme = (articles.FOLDER / "README.md").read_text()
    assert re.findall(r"<!-- article: (\d+) -->", readme) == list(TABLES)


@pytest.mark.parametrize("arguments, message", [
    (["007"], "007"),
    (["--pack", "x.zip"], "--arch"),
    (["--pack", "x.zip", "--arch", "sm_90", "-o", "x.json"], "--output"),
    (["--pack", "nowhere/x.zip", "--arch", "sm_90"], "nowhere"),
    (["-o", "nowhere/x.json"], "nowhere"),
    (["--from", "nowhere.json"], "nowhere.json"),
    (["x.zip", "002"], "x.zip"),
    (["x.zip", "--arch", "sm_90"], "--arch"),
    (["--pack", "x.txt", "--arch", "sm_90"], "must end with .zip, such as x.zip"),
    (["--write", "002"], "articles"),
])  # fmt: skip
def test_bad_input_is_said_in_one_line(call, arguments, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "tir_schedules.subjects.compiling.compile_jobs", lambda *arguments: pytest.fail("compiles")
    )
    monkeypatch.setattr(session, "gpu_machine", lambda: pytest.fail("looks for a GPU"))
    code, out, err = call(*arguments)
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_a_readme_is_written_or_checked(call, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        call("--write", "--check", "--readme", tmp_path / "R.md")
    assert "--check: not allowed with argument --write" in capsys.readouterr().err


@pytest.fixture
def gpu(monkeypatch):
    """A made-up GPU, on which everything takes 10 microseconds; and an article small enough to be compiled in
    a test."""
    fake = SimpleNamespace(name="gpu", arch="sm_80", device_name="Made-up GPU", seen=[])

    def timed(machine, subjects, policy, cub):
        fake.seen, fake.cub = list(subjects), cub
        rows = [made_up.row_of(subject, 10.0) for subject in subjects]
        return SimpleNamespace(
            rows=rows, refused=[], limits=made_up.LIMITS, notes=[], device=made_up.DEVICE
        ), Policy()

    monkeypatch.setattr(session, "gpu_machine", lambda: fake)
    monkeypatch.setattr(session, "measure_subjects", timed)
    monkeypatch.setitem(TABLES, "000", replace(SGEMM_1080TI, sizes=(64,), steps=SGEMM_1080TI.steps[:2]))
    monkeypatch.setitem(TABLES, "002", replace(REDUCE, sizes=(4096,), steps=REDUCE.steps[3:4]))
    return fake


GEMMS = [
    "sgemm/naive (schedule)",
    "sgemm/naive (twin)",
    "sgemm/shared_tile:article_000 (schedule)",
    "sgemm/shared_tile:article_000 (twin)",
    "cuBLAS",
    "cuBLASLt",
]
SUMS = ["reduce/first_add (schedule)", "reduce/first_add (twin)", "CUB"]


def test_articles_are_measured_here(call, gpu, tmp_path):
    code, out, err = call("000", "-o", tmp_path / "r.json")
    assert (code, err.startswith("wrote ")) == (0, True) and [subject.label for subject in gpu.seen] == GEMMS
    assert re.search(r"shared memory +shared_tile:article_000 +40.5293 +2.36x +10.0 +10.0 +1.00x", out)
    results = load_results(tmp_path / "r.json")
    assert results["command"] == "experiments/articles.py 000" and len(results["rows"]) == 6


def test_articles_are_packed_for_another_computer_and_timed_there(call, gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(vendor, "build_cub", lambda arch: b"\x7fELF of " + arch.encode())
    path = tmp_path / "a.zip"
    code, out, _ = call("002", "000", "--pack", path, "--arch", "sm_80")
    assert code == 0 and f"packed {len(SUMS + GEMMS)} subjects for sm_80" in out and gpu.seen == []
    assert [subject.label for subject in load_pack(path).subjects] == SUMS + GEMMS
    monkeypatch.setattr(
        "tir_schedules.subjects.compiling.compile_jobs", lambda *arguments: pytest.fail("compiles")
    )
    code, out, _ = call(path, "-o", tmp_path / "r.json")
    assert (
        code == 0
        and [subject.label for subject in gpu.seen] == SUMS + GEMMS
        and gpu.cub.startswith(b"\x7fELF")
    )
    assert "Article 002" in out and "Article 000" in out and "Article 003" not in out
    assert load_results(tmp_path / "r.json")["packed"]["command"] == "experiments/articles.py 002 000"
