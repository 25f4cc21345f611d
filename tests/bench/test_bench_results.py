"""Results files, tables, comparisons and the tables of the README, on made-up measurements."""

import json
import re
from copy import deepcopy

import made_up
import pytest
import tables as tables_script

from tir_schedules.bench.compare import compare, parse_threshold, print_comparison
from tir_schedules.bench.tables import print_results
from tir_schedules.bench.views import figures, groups_of, spans
from tir_schedules.errors import BadInput
from tir_schedules.subjects.results import as_text, load_results, save_results

SIX = (256, 512, 1024, 2048, 4096, 8192)


def changed(results, **changes):
    """The same results with rows changed: keys are forms, values dictionaries for the last row of that
    form."""
    results = deepcopy(results)
    for form, fields in changes.items():
        [row for row in results["rows"] if row["form"] == form][-1].update(fields)
    return results


def printed(capsys, results):
    print_results(results)
    return capsys.readouterr().out


def test_a_results_file_has_a_line_per_row_and_reads_back(tmp_path):
    results = made_up.results("sgemm")
    save_results(results, tmp_path / "a.json")
    assert load_results(tmp_path / "a.json") == results
    lines = (tmp_path / "a.json").read_text().splitlines()
    assert [json.loads(line.rstrip(",")) for line in lines if '"samples_us"' in line] == results["rows"]


def test_where_results_come_from_is_in_the_file():
    results = made_up.results("sgemm/naive")
    assert {
        "schema",
        "command",
        "date",
        "versions",
        "git_revision",
        "device",
        "policy",
        "limits",
    } <= results.keys()


def broken(change):
    results = deepcopy(
        made_up.results("sgemm/naive", refuse=lambda subject: "wrong" if subject.form == "twin" else "")
    )
    change(results)
    return as_text(results)


@pytest.mark.parametrize(
    "text, part",
    [
        ("{", "not JSON"),
        ("[]", "no schema"),
        ("{}", "no schema"),
        (broken(lambda results: results.update(schema=2)), "schema 2"),
        (broken(lambda results: results.pop("rows")), "'rows'"),
        (broken(lambda results: results.update(device=[])), "device: [] is not an object"),
        (broken(lambda results: results["rows"][1].pop("median_us")), "rows[1]: 'median_us' is missing"),
        (broken(lambda results: results["rows"].append(3)), "rows[4]: 3 is not an object"),
        (broken(lambda results: results["rows"][0].update(shape="large")), "'large'"),
        (broken(lambda results: results["rows"][0].update(family="fft")), "'fft'"),
        (broken(lambda results: results["rows"][0].update(samples_us=[])), "no samples"),
        (
            broken(lambda results: results["rows"][0].update(median_us=0)),
            "rows[0].median_us: 0: input should be greater than 0.000001",
        ),
        (
            broken(lambda results: results["rows"][2]["workload"].update(m=1.5)),
            "rows[2].workload.m: 1.5 is not an integer",
        ),
        (
            broken(lambda results: results["rows"][2]["workload"].update(m=True)),
            "rows[2].workload.m: true is not an integer",
        ),
        (
            broken(lambda results: results["rows"][2]["workload"].update(m=2**31)),
            "rows[2].workload.m: 2147483648: input should be less than",
        ),
        (
            broken(lambda results: results["rows"][2]["workload"].pop("m")),
            "rows[2].workload: {'n': 4096, 'k': 4096, 'layout': 'nn'} is not a workload of sgemm",
        ),
        (
            broken(lambda results: results["rows"][2]["workload"].update(m=64)),
            "rows[2]: its shape is '4096x4096x4096' and its workload 64x4096x4096",
        ),
        (
            broken(lambda results: results["rows"][0].update(throttled="power")),
            "rows[0].throttled: 'power' is not a list",
        ),
        (broken(lambda results: results["rows"][0]["sm_mhz"].append([])), "rows[0].sm_mhz"),
        (broken(lambda results: results["versions"].update(nvcc=[])), "versions.nvcc: [] is not a text"),
        (
            broken(lambda results: results["device"].update(name="a\x1b[31m")),
            "device.name: 'a\\x1b[31m' has control characters",
        ),
        (
            broken(lambda results: results["rows"][0].update(vendor_detail={"chosen": 0, "candidates": []})),
            "rows[0].vendor_detail: 'chosen' is 0; there are 0 candidates",
        ),
        (
            broken(lambda results: results.update(notes=["a\x1b[31m"])),
            "notes[0]: 'a\\x1b[31m' has control characters",
        ),
        (
            broken(lambda results: results["refused"][0].update(shape="1x1x1 <b>")),
            "refused[0].shape: '1x1x1 <b>' is not a shape of sgemm",
        ),
        (
            broken(lambda results: results["rows"][0].update(rate=float("inf"))),
            "rows[0].rate: not a finite number",
        ),
        (
            broken(lambda results: results["rows"][0].update(rate=10**400)),
            "rows[0].rate: not a finite number, or one with too many digits",
        ),
        (broken(lambda results: results.update(schema=True)), "schema true"),
        (broken(lambda results: results.update(schema="\ud800")), "not a text"),
        ('{"schema": 1, "schema": 1}', "the key 'schema' occurs twice"),
        ("[" * 100_000, "nested deeper than 64"),
        ('{"schema": ' + "[" * 100 + "]" * 100 + "}", "nested deeper than 64"),
        ('{"schema": ' + "9" * 10_000 + "}", "not a finite number"),
        ("\ufeff{}", "BOM"),
        ("", "is not JSON"),
        ("\0", "is not JSON"),
        (broken(lambda results: results["refused"][0].pop("reason")), "'reason'"),
    ],
)
def test_what_is_no_results_file_is_bad_input_in_one_line(tmp_path, text, part):
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as error:
        load_results(path)
    assert (
        part in str(error.value) and str(error.value).startswith(str(path)) and "\n" not in str(error.value)
    )


def test_a_cell_has_the_rate_of_the_schedule_and_its_ratio_to_the_twin(capsys):
    results = changed(
        made_up.results("sgemm/naive", sizes=(1024,)),
        schedule={"rate": 36.2},
        twin={"rate": 18.1},
        vendor={"rate": 72.4},
    )
    lines = printed(capsys, results).splitlines()
    assert "naive               36.2 (2.00x)" in lines and "cuBLAS              72.4" in lines
    assert "best rung / cuBLAS  0.50x" in lines
    assert "fastest: naive (schedule) at 1024" in lines
    assert "schedule / twin: 2.000x in the geometric mean, lowest 2.000x (naive at 1024)" in lines


@pytest.mark.parametrize("name", ["sgemm", "hgemm"])
def test_six_sizes_fit_140_columns(capsys, name):
    out = printed(
        capsys, made_up.results(name, sizes=SIX, change=lambda row: {**row, "throttled": ["power cap"]})
    )
    tables = [line for line in out.splitlines() if "x)" in line and "schedule / twin" not in line]
    assert tables and max(map(len, tables)) <= 140
    heads = [line.split() for line in out.splitlines() if "TFLOPS  " in line]
    assert heads and all(head[-6:] == [str(size) for size in SIX] for head in heads)


def test_kinds_have_tables_of_their_own(capsys):
    out = printed(capsys, made_up.results("hgemm/mma_xor_swizzle", "reduce/shuffle", n=(1 << 20, 1000)))
    for title in (
        "hgemm nt float16, TFLOPS",
        "hgemm nn float32, TFLOPS",
        "reduce int32, GB/s",
        "reduce float32, GB/s",
    ):
        assert f"\n{title}" in out
    assert next(line for line in out.splitlines() if line.startswith("reduce int32")).split()[-2:] == [
        "1000",
        "2^20",
    ]


def test_a_throttled_cell_is_marked_and_the_mark_explained(capsys):
    results = made_up.results("sgemm/naive", sizes=(1024,))
    assert "*" not in printed(capsys, results)
    out = printed(capsys, changed(results, twin={"throttled": ["power cap"], "sm_mhz": [1500, 1980]}))
    assert (
        "* (1.01x)" in out
        and "\n* the GPU lowered its clock while this was timed: power cap (down to 1500 MHz)" in out
    )


def test_what_was_refused_is_in_its_cell_and_explained(capsys):
    reasons = {"sgemm/naive (schedule)": "C[0] is nan"}
    out = printed(
        capsys, made_up.results("sgemm", sizes=(64,), refuse=lambda subject: reasons.get(subject.label, ""))
    )
    assert "naive               refused (twin " in out
    assert "\nrefused: sgemm/naive (schedule) on 64x64x64: C[0] is nan\n" in out


def test_a_rung_keeps_its_place_where_it_was_refused(capsys):
    out = printed(
        capsys,
        made_up.results("sgemm", refuse=lambda subject: "wrong" if subject.name == "sgemm/naive" else ""),
    )
    assert out.splitlines()[3].startswith("naive ") and out.splitlines()[4].startswith("coalesced ")


def test_results_of_which_all_was_refused_still_print(capsys):
    assert "refused: cuBLAS on" in printed(
        capsys, made_up.results("sgemm/naive", refuse=lambda subject: "no memory")
    )


def test_brackets_in_messages_are_not_markup(capsys):
    results = changed(
        made_up.results("sgemm/naive"), schedule={"name": "sgemm/[/a]", "shape": "64x64x64 [/b]"}
    )
    results["refused"] = [{**results["rows"][0], "reason": "C[/0] [red]"}]
    out = printed(capsys, results)
    assert "\n[/a]" in out and "\nsgemm [/b], TFLOPS" in out and "C[/0] [red]" in out


@pytest.mark.parametrize(
    "rate, text", [(0.1234, "0.123"), (3.14159, "3.14"), (36.25, "36.2"), (679.4, "679"), (4012.3, "4012")]
)
def test_rates_have_three_digits_and_no_exponent(rate, text):
    assert figures(rate) == text


def test_neighbouring_sizes_are_drawn_together():
    assert spans([("1", "a"), ("2", "a"), ("3", "b"), ("4", "a")]) == [("1..2", "a"), ("3", "b"), ("4", "a")]


def test_a_best_rung_may_be_a_twin():
    (group,) = groups_of(changed(made_up.results("sgemm/naive", sizes=(64,)), twin={"rate": 1000.0}))
    assert group.best("64")["form"] == "twin"


OLD = made_up.results("sgemm/naive", "sgemm/transposed", sizes=(1024,))


def slower(form, factor, **others):
    row = [row for row in OLD["rows"] if row["form"] == form][-1]
    return changed(OLD, **{form: {"median_us": row["median_us"] * factor, **others}})


@pytest.mark.parametrize(
    "new, regressions",
    [
        (OLD, 0),
        (slower("schedule", 1.05), 1),
        (slower("twin", 1.05), 1),
        (slower("schedule", 1.02), 0),  # within the threshold
        (slower("schedule", 1.05, spread=0.06), 0),  # within the spread
        (slower("schedule", 0.5), 0),
        (slower("vendor", 2.0), 0),
    ],
)
def test_a_regression_is_slower_than_the_threshold_and_than_the_spread(new, regressions):
    assert len(compare(OLD, new).regressions(0.03)) == regressions


def test_the_spread_of_the_old_run_counts_as_well():
    old = changed(OLD, schedule={"spread": 0.06})
    assert not compare(old, slower("schedule", 1.05)).regressions(0.03)


def test_rows_without_a_partner_are_counted(capsys):
    new = made_up.results("sgemm/naive", "sgemm/coalesced", "sgemm/warp_tiling", sizes=(1024,))
    comparison = compare(OLD, new)
    assert (len(comparison.changes), comparison.only_old, comparison.only_new) == (3, 2, 4)
    print_comparison(comparison, 10.0)
    assert (
        "3 compared: 3 within 1000%, 0 regressions; 2 only in the old results, 4 only in the new"
        in capsys.readouterr().out
    )


def test_a_change_is_shown_with_both_times(capsys):
    print_comparison(compare(OLD, slower("schedule", 1.25)), 0.03)
    out = capsys.readouterr().out
    assert (
        "sgemm/transposed (schedule)  1024x1024x1024" in out
        and "+25.0%  REGRESSION" in out
        and "4 within 3%, 1 regressions" in out
    )


def test_results_of_another_gpu_are_not_compared():
    other = {**OLD, "device": {"name": "Another GPU"}}
    with pytest.raises(BadInput, match="Another GPU.*Made-up GPU"):
        compare(other, OLD)


def test_a_threshold_is_a_percentage():
    assert parse_threshold("3%") == 0.03 and parse_threshold("0.5%") == 0.005
    for text in ("3", "0.03", "-1%", "nan%", "inf%", "%", "a%"):
        with pytest.raises(BadInput, match="3%"):
            parse_threshold(text)


@pytest.fixture
def rewrite(tmp_path):
    """Calls experiments/tables.py on a README of its own; returns exit code and what the README then is."""
    folder = tmp_path / "results"
    folder.mkdir()
    save_results(
        made_up.results("sgemm", "hgemm/mma_xor_swizzle", sizes=(512, *SIX[2:])), folder / "bench_a.json"
    )
    (folder / "other.json").write_text('{"kernels": []}')

    def call(readme, *arguments):
        path = tmp_path / "README.md"
        path.write_text(readme)
        code = tables_script.main([*arguments, "--readme", str(path), "--results", str(folder)])
        return code, path.read_text()

    return call


MARKED = re.compile(rf"<!-- ({'|'.join(tables_script.FILES)}|best|headline): ")
MARKERS = "before\n<!-- results: {} -->\nold\n<!-- end -->\nafter\n"


def test_the_readme_gets_its_table_between_the_markers(rewrite):
    code, readme = rewrite(MARKERS.format("sgemm"))
    assert (
        code == 0
        and readme.startswith("before\n<!-- results: sgemm -->\n")
        and readme.endswith("<!-- end -->\nafter\n")
    )
    assert "old" not in readme and "| sgemm, TFLOPS | 1024 | 2048 | 4096 | 8192 |" in readme
    assert "| transposed | " in readme and "| cuBLAS | " in readme and "hgemm" not in readme
    for fact in (
        "Made-up GPU",
        "driver 1.2.3",
        "SM clock 1975 to 1980 MHz",
        "CUDA 13.0.88",
        "TVM 0.27.0",
        "revision 0123456789ab",
    ):
        assert f"{fact}, " in readme


def test_a_kind_can_be_named_and_a_family_has_all_its_kinds(rewrite):
    assert rewrite(MARKERS.format("hgemm nn float32"))[1].count("TFLOPS | 1024") == 1
    assert rewrite(MARKERS.format("hgemm"))[1].count("TFLOPS | 1024") == 4


def test_check_says_whether_the_readme_is_up_to_date_and_changes_nothing(rewrite):
    readme = rewrite(MARKERS.format("sgemm"))[1]
    assert rewrite(readme, "--check") == (0, readme) and rewrite(readme) == (0, readme)
    stale = readme.replace("1.01x", "1.02x", 1)
    assert rewrite(stale, "--check") == (1, stale)


def test_several_readmes_are_rewritten_and_checked_together(rewrite, tmp_path):
    readme = rewrite(MARKERS.format("sgemm"))[1]
    good, stale = tmp_path / "good.md", tmp_path / "stale.md"
    good.write_text(readme)
    stale.write_text(MARKERS.format("sgemm"))
    both = ["--readme", str(good), str(stale), "--results", str(tmp_path / "results")]
    assert tables_script.main([*both, "--check"]) == 1 and "old" in stale.read_text()
    assert tables_script.main(both) == 0 and stale.read_text() == good.read_text() == readme
    assert tables_script.main([*both, "--check"]) == 0


def test_every_readme_with_markers_is_rewritten():
    root = tables_script.ROOT
    pages = [root / "README.md", *root.glob("[!.]*/**/*.md")]
    assert {page for page in pages if MARKED.search(page.read_text())} == set(tables_script.READMES)


def test_the_best_rungs_are_a_line_each(rewrite, capsys):
    code, readme = rewrite("<!-- best: sgemm; hgemm nn float32 -->\n<!-- end -->\n")
    lines = re.findall(r"^\| (?:sgemm|hgemm nn float32) \| .*", readme, re.M)
    assert (
        code == 0
        and len(lines) == 2
        and all("x at 1024, " in line and " at 8192 |" in line for line in lines)
    )
    assert rewrite("<!-- best: fft -->\n<!-- end -->\n")[0] == 2 and "'fft'" in capsys.readouterr().err


def test_a_marker_without_results_is_bad_input(rewrite, capsys):
    assert rewrite(MARKERS.format("fft"))[0] == 2 and "'fft'" in capsys.readouterr().err


def test_the_readmes_of_this_project_are_what_the_recorded_results_say():
    assert tables_script.main(["--check"]) == 0
