"""The page of a report: its numbers are those of the results and counters it is made of, and it looks right
in a browser."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import counted_by_hand  # noqa: E402
import made_up  # noqa: E402
from browser import opened  # noqa: E402

from tir_schedules.bench.views import figures, short  # noqa: E402
from tir_schedules.cli.main import main  # noqa: E402
from tir_schedules.ladders.registry import FAMILIES, every_rung, ladder  # noqa: E402
from tir_schedules.model.findings import Finding, Location  # noqa: E402
from tir_schedules.model.metrics import DATA_PIPE, INSTRUMENTED, METRICS  # noqa: E402
from tir_schedules.report import padding, page, recorded  # noqa: E402
from tir_schedules.report.counted import by_kernel, count, jobs_of  # noqa: E402
from tir_schedules.report.drawing import embedded  # noqa: E402
from tir_schedules.subjects.results import save_results  # noqa: E402

HALVES = {"layout": "nt", "accumulate": "float16"}
SIZES = (1024, 4096)
FILE = "report.html"
LOADS = (f"{INSTRUMENTED}_ld.sum", f"{DATA_PIPE}_ld.sum")


class Page(HTMLParser):
    """tables: caption -> rows of cells; words: all text outside of pictures."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.words, self.rows, self.inside = {}, "", [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.inside.append(tag)
        if tag == "table":
            self.caption, self.rows = "", []
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        while tag in self.inside and self.inside.pop() != tag:  # tags that are not closed, such as <br>
            pass
        if tag == "table":
            self.tables[self.caption] = [[cell.strip() for cell in row] for row in self.rows]

    def handle_data(self, data):
        if "style" in self.inside or "svg" in self.inside:
            return
        self.words += data
        if "caption" in self.inside:
            self.caption += data
        elif "td" in self.inside or "th" in self.inside:
            self.rows[-1][-1] += data

    def rows_of(self, caption):
        """First cell -> the others, of the table whose caption has these words."""
        (rows,) = [rows for name, rows in self.tables.items() if caption in name]
        return {row[0]: row[1:] for row in rows}

    def text(self):
        return re.sub(r"\s+", " ", self.words)


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
        "2001-01-02",
        [*entries, counters("sgemm/naive (tir)", 1, 2.0, probe="a load")],
    )
    write_counters(
        folder / "old_counters.json", "2001-01-01", [counters(label, 1000, 1.0) for label in measured]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "count", counted_by_hand.counted)
        patch.setattr(padding, "patterns_of", counted_by_hand.patterns)
        assert made(folder)[0] == 0
    return folder


@pytest.fixture(scope="module")
def shown(folder):
    return Page((folder / FILE).read_text())


def made(folder, *options):
    """The exit code, and the page of a folder of results."""
    file = folder / FILE
    code = main(["report", "-o", str(file), "--results", str(folder), *options])
    return code, Page(file.read_text()) if file.exists() else None


def counters(label, loads, measured, **others):
    """A recorded launch: wavefronts of loads predicted and measured, everything else nothing."""
    entry = {
        "label": label,
        "workload": {"m": 256, "n": 256, "k": 256},
        "predicted": {"shared_load": {"cost": loads}},
    }
    return entry | {"measured": dict.fromkeys(METRICS, 0.0) | dict.fromkeys(LOADS, measured)} | others


def write_counters(path, date, entries):
    path.write_text(json.dumps({"date": date, "device": {"name": "Made-up GPU"}, "kernels": entries}))


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
    assert all(part in shown.text() for part in ("Made-up GPU", "2001-02-03", "0123456789ab", "nvcc 13.0.88"))


def test_without_the_cpu_machine_the_page_says_what_is_left_out(results, monkeypatch, capsys):
    monkeypatch.setattr(page, "count", None)
    code, shown = made(results, "--quick")
    assert code == 0 and "report.html: 0." in capsys.readouterr().out
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
        "loads take 4,004 wavefronts where 1,001 would do, 4.00x the ideal",
        "wmma_padded:padded take 1,001 wavefronts, 1.00x the ideal",
        f"4096, padding takes wmma_shared:unpadded from {swept_rate} to {swept_rate}",
        f"and wmma_shared from {gained[0]} to {gained[1]}.",
        "stores take 404 wavefronts where 202 would do (2.00x; without padding 1.00x)",
        "with 1,000 requests against 200, so that the trade is good: in all 4,206 wavefronts become 1,405",
        "a block takes 5,120 bytes instead of 4,096, 25 % more",
        "With rows of 64 bytes these start in 2 different banks",
        "With rows of 80 bytes they start in 8",
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
    assert shown.rows_of("sgemm: as counted")["coalesced (schedule)"][:2] == ["256x256x256", "1,000 → 2,000"]


def swept(values):
    """A sweep of the padding of one kernel, in the format of experiments/sweeps.py."""
    document = made_up.results("hgemm/wmma_padded", sizes=(4096,), **HALVES)
    (row,) = [row for row in document["rows"] if row["form"] == "schedule"]
    occupancy, reads, writes = (
        {"blocks": 3},
        {"requests": 9, "cost": 70, "ideal": 7},
        {"requests": 5, "cost": 5, "ideal": 5},
    )
    facts = {"registers": 99, "shared_bytes": 12345, "occupancy": occupancy, "reads": reads, "writes": writes}
    identity = {key: row[key] for key in ("family", "form", "shape", "workload")}
    named = {value: f"hgemm/wmma_padded:padded,skew={value}" for value in values}
    rows = [{**row, "name": name, "median_us": 100.0 + value} for value, name in named.items()]
    points = [{**identity, "name": name, **facts} for name in named.values()]
    points.append({**identity, "name": "hgemm/wmma_padded:padded,skew=2", "cannot": "rows are misaligned"})
    return document | {"command": "experiments/sweeps.py padding", "rows": rows, "points": points}


def test_sweeps_are_drawn_and_listed(folder, shown):
    assert shown.tables["skew: as recorded; lost: wavefronts beyond the least"][1:] == [
        ["wmma_padded:padded on 4096x4096x4096 nt float16, schedule"],
        ["0", "100", "99", "12,345", "3", "63", "0"],
        ["2", "cannot: rows are misaligned"],
        ["8", "108", "99", "12,345", "3", "63", "0"],
    ]
    assert "time over skew" in (folder / FILE).read_text()


def test_plots_are_in_the_page_s_colours_and_keep_their_text(folder):
    pictures = [
        svg
        for svg in re.findall("<svg.*?</svg>", (folder / FILE).read_text(), re.S)
        if "matplotlib" in svg or "axes_1" in svg
    ]
    assert len(pictures) == 7
    for svg in pictures:
        assert not re.search("(fill|stroke): #", svg) and "<text" in svg and "var(--c1)" in svg


def recording(path, date, *names, sizes=SIZES):
    save_results(made_up.results(*names, sizes=sizes) | {"date": date}, path)


@pytest.mark.parametrize("date, later, sizes, hidden", [
    ("2003", ("sgemm/pipelined", "sgemm/multistage"), (*SIZES, 8192), False),
    ("2003", [rung.id for rung in every_rung("sgemm") if rung.variant], SIZES, False),  # more names, but fewer rungs
    ("2003", ("sgemm",), SIZES[:1], False),
    ("2003", ("sgemm",), SIZES, True),
    ("2001", ("sgemm",), SIZES, False),
])  # fmt: skip
def test_a_later_recording_of_few_rungs_does_not_hide_the_ladder(tmp_path, date, later, sizes, hidden):
    recording(tmp_path / "a.json", "2002", "sgemm")
    recording(tmp_path / "b.json", date, *later, sizes=sizes)
    found = recorded.find_recorded([tmp_path])
    ((group, document),) = found.groups().values()
    assert document["date"] == (date if hidden else "2002") and len(group.names) == 10
    assert [further["date"] for _, further in found.recordings["sgemm"][1:]] == ["2002" if hidden else date]


def test_what_is_not_shown_in_full_stands_below_the_ladder(tmp_path):
    recording(tmp_path / "a.json", "2002-02-02", "sgemm")
    recording(tmp_path / "b.json", "2003-03-03", "sgemm/pipelined", "sgemm/multistage")
    _, shown = made(tmp_path, "--quick")
    assert len(shown.rows_of("times that of its twin; another recording")) == 2 + 3  # heading, cuBLAS, share
    ladder, _ = (rows for name, rows in shown.tables.items() if name.startswith("sgemm: TFLOPS"))
    assert len(ladder) == 10 + 3 and "Also recorded: pipelined to multistage, 2003-03-03" in shown.text()


def test_recorded_results_of_this_project_show_all_rungs_of_all_ladders():
    groups = recorded.find_recorded([recorded.DEFAULT_FOLDER]).groups()
    assert {group.family: set(group.names) for group, _ in groups.values()} == {
        family: {rung.id for rung in ladder(family)} for family in FAMILIES
    }  # fmt: skip


@pytest.mark.parametrize(
    "content, complaint",
    [
        (None, "cannot read"),
        ("{", "is not JSON"),
        ("{}", "holds no times and no counters"),
        ('{"schema": 9}', "schema 9"),
    ],
)
def test_what_is_no_result_is_refused_in_one_line(tmp_path, capsys, content, complaint):
    file = tmp_path / "results.json"
    if content:
        file.write_text(content)
    assert main(["report", "-o", str(tmp_path / "report.html"), "--results", str(file)]) == 2
    error = capsys.readouterr().err
    assert complaint in error and error.count("\n") == 1


def test_without_any_results_the_remedy_is_named(tmp_path, capsys, monkeypatch):
    assert (
        made(tmp_path) == (2, None) and f"no times of a ladder in {tmp_path}: name" in capsys.readouterr().err
    )
    monkeypatch.setattr(recorded, "DEFAULT_FOLDER", tmp_path / "nowhere")
    assert main(["report", "-o", str(tmp_path / "report.html")]) == 2
    assert "--results" in capsys.readouterr().err


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


def test_the_page_looks_right_in_a_browser(folder, shown, check_page):
    check_page(folder / FILE)


HOSTILE = """"'><script>document.title = "hacked"</script><img src=x onerror='document.title = "hacked"'>&amp;<!-- $\\frac{$ \\g<0> {{ 7 * 7 }}"""
FIXED = ("family", "form", "shape", "unit", "arch", "layout", "accumulate", "dtype", "date")
"""What a schema takes only as it is."""


def spoilt(value, key=""):
    """A document with hostile text in all of its strings that are free."""
    if isinstance(value, dict):
        return {name: spoilt(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [spoilt(each, key) for each in value]
    if not isinstance(value, str) or key in FIXED or value in ("copy bandwidth", "fp32 peak"):
        return value
    return value.replace(",skew=", f"{HOSTILE},skew=") if ",skew=" in value else value + HOSTILE


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A page of results with hostile text wherever they have text."""
    folder = tmp_path_factory.mktemp("hostile")
    refuse = {
        "refuse": lambda subject: "wrong" if subject.form == "twin" else "",
        "change": lambda row: {**row, "throttled": ["power"]},
    }
    save_results(spoilt(made_up.results("sgemm/naive", sizes=SIZES, **refuse)), folder / "sgemm.json")
    save_results(spoilt(swept((0, 8))), folder / "sweeps.json")
    entry = spoilt({**counters("sgemm/naive (tir)", 1000, 1500.0), "workload": {"m": 8, "kind": "nt"}})
    (folder / "counters.json").write_text(
        json.dumps({**spoilt(made_up.SOURCE), "device": spoilt(made_up.DEVICE), "kernels": [entry]})
    )
    assert made(folder, "--quick")[0] == 0
    return folder / FILE


class Elements(HTMLParser):
    """tags: of all elements; events: attributes that would run something."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.events = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.events += [
            name for name, value in attributes if name.startswith("on") or "javascript:" in (value or "")
        ]


def test_text_of_results_is_nothing_but_text_in_the_page(hostile):
    text = hostile.read_text()
    found = Elements(text)
    assert not found.tags & {"script", "img"} and not found.events
    assert text.count("&lt;script&gt;") > 20 and "49" not in re.findall(r"\\g&lt;0&gt; (\S+)", text)
    for said in ("Made-up GPU", "sgemm/naive", "power", "wrong", "fp32 peak"):
        assert said in text


def test_no_script_of_results_runs(hostile, browser):
    with opened(browser, hostile, {"width": 800, "height": 600}, "light") as (page, noticed):
        page.wait_for_timeout(100)
        assert page.title() == "GPU kernels as ladders of schedules" and noticed == []


@pytest.mark.parametrize("key", ["shape", "family", "form", "unit"])
def test_what_names_an_element_of_the_page_is_refused(tmp_path, capsys, key):
    document = made_up.results("sgemm/naive", sizes=SIZES)
    document["rows"][0] = document["rows"][0] | {key: document["rows"][0][key] + HOSTILE}
    save_results(document, tmp_path / "a.json")
    assert made(tmp_path, "--quick") == (2, None)
    err = capsys.readouterr().err
    assert "rows[0]" in err and err.count("\n") == 1


def test_a_figure_escapes_its_label_and_its_name():
    text = embedded('<svg width="1" viewBox="0 0 1 1"><g id="a"/></svg>', HOSTILE, HOSTILE)
    found = Elements(text)
    assert found.tags == {"svg", "g"} and not found.events and "\\g&lt;0&gt;" in text


def test_each_kind_of_a_ladder_has_its_own_counters(tmp_path):
    save_results(made_up.results("hgemm/wmma_shared", sizes=SIZES), tmp_path / "hgemm.json")
    groups = [group for group, _ in recorded.find_recorded([tmp_path]).groups().values()]
    counted, _ = counted_by_hand.counted([job for group in groups for job in jobs_of(group)], "sm_90")
    assert len(groups) == 4
    for group in groups:
        kernels = by_kernel(counted, jobs_of(group))
        assert {str(kernel.subject.workload) for kernel in kernels.values()} == {f"512x512x256 {group.kind}"}


def test_rungs_are_counted_by_the_cpu_machine(tmp_path):
    save_results(made_up.results("sgemm/shared_tile", sizes=SIZES), tmp_path / "sgemm.json")
    found = recorded.find_recorded([tmp_path])
    ((group, _),) = found.groups().values()
    jobs = jobs_of(group)
    counted, refused = count(jobs, found.arch)
    kernels = by_kernel(counted, jobs)
    assert not refused and list(kernels) == [("sgemm/shared_tile", "schedule"), ("sgemm/shared_tile", "twin")]
    tiles = 256 // 32
    assert kernels["sgemm/shared_tile", "twin"].access("shared_store").requests == tiles**3 * 32 * 2


@pytest.mark.slow
def test_the_example_of_real_kernels(tmp_path, check_page):
    save_results(made_up.results("hgemm", sizes=(1024,), **HALVES), tmp_path / "hgemm.json")
    code, shown = made(tmp_path)
    assert code == 0
    table = shown.rows_of("Schedules, counted for 512x512x256 nt float16")
    assert [table[short(name)][2] for name in padding.NAMES] == ["4.00x", "1.00x"] * 2 + ["1.00x"] * 2
    assert [table[short(name)][4] for name in padding.NAMES] == ["1.00x", "2.00x"] * 2 + ["1.00x"] * 2
    assert "by its banks a load takes 4 wavefronts and a copy 4, where 4 and 4 are the least" in shown.text()
    check_page(tmp_path / "report.html")
