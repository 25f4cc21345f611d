"""Recorded results of a report: which recording is shown, what is refused, and which kernels are counted."""

import counted_by_hand
import pytest
from report_pages import SIZES, made, made_up, recording

from tir_schedules.cli.main import main
from tir_schedules.insight.profile.nsight import Comparison
from tir_schedules.ladders.known import rungs_beside
from tir_schedules.ladders.registry import FAMILIES, every_rung, ladder
from tir_schedules.report import agreement, plots, recorded
from tir_schedules.report.counted import count, index_by_kernel, jobs_of
from tir_schedules.subjects.results import save_results

VARIANTS = tuple(
    rung.id for rung in every_rung("sgemm") if rung.variant and "products" not in dir(rung.config)
)
"""More names than the ladder's, but of fewer rungs."""


@pytest.mark.parametrize("date, later, sizes, hidden", [
    ("2043", ("sgemm/pipelined", "sgemm/multistage"), (*SIZES, 8192), False),
    ("2043", VARIANTS, SIZES, False),
    ("2043", ("sgemm",), SIZES[:1], False),
    ("2043", ("sgemm",), SIZES, True),
    ("2041", ("sgemm",), SIZES, False),
])  # fmt: skip
def test_a_later_recording_of_few_rungs_does_not_hide_the_ladder(tmp_path, date, later, sizes, hidden):
    recording(tmp_path / "a.json", "2042", "sgemm")
    recording(tmp_path / "b.json", date, *later, sizes=sizes)
    found = recorded.find_recorded([tmp_path])
    ((group, document),) = found.groups().values()
    assert document["date"] == (date if hidden else "2042") and len(group.names) == len(
        made_up.MULTIPLYING_FLOAT32
    )
    assert [further["date"] for _, further in found.recordings["sgemm"][1:]] == ["2042" if hidden else date]


def test_what_is_not_shown_in_full_stands_below_the_ladder(tmp_path):
    recording(tmp_path / "a.json", "2042-02-02", "sgemm")
    recording(tmp_path / "b.json", "2043-03-03", "sgemm/pipelined", "sgemm/multistage")
    _, shown = made(tmp_path, "--quick")
    assert len(shown.rows_of("schedule / twin; another recording")) == 2 + 3  # heading, cuBLAS, share
    full, _ = (rows for name, rows in shown.tables.items() if name.startswith("sgemm: TFLOPS"))
    assert (
        len(full) == len(made_up.MULTIPLYING_FLOAT32) + 3
        and "Also recorded: pipelined to multistage, 2043-03-03" in shown.text()
    )


def test_recorded_results_of_this_project_show_all_rungs_of_all_ladders():
    groups = recorded.find_recorded([recorded.DEFAULT_FOLDER]).groups()
    names = {family: set() for family in FAMILIES}
    for group, _ in groups.values():
        names[group.family] |= {name.partition(":")[0] for name in group.names}
    # Recorded on other shapes, with times in their texts; or not yet recorded on a whole ladder.
    names["hgemm"] |= {"hgemm/split_k", "hgemm/stream_k", "hgemm/tile_shapes"}
    names["sgemm"] |= {rung.id for rung in made_up.OF_PARTS}
    names["reduce"] |= {"reduce/bulk"}
    beside = {rung.id for family in FAMILIES for rung in rungs_beside(family)}  # chosen for drawn shapes
    assert {family: found - beside for family, found in names.items()} == {
        family: {rung.id for rung in ladder(family)} for family in FAMILIES
    }


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


def test_each_kind_of_a_ladder_has_its_own_counters(tmp_path):
    save_results(made_up.results("hgemm/wmma_shared", sizes=SIZES), tmp_path / "hgemm.json")
    groups = [group for group, _ in recorded.find_recorded([tmp_path]).groups().values()]
    counted, _ = counted_by_hand.counted([job for group in groups for job in jobs_of(group)], "sm_90")
    assert len(groups) == 4
    for group in groups:
        kernels = index_by_kernel(counted, jobs_of(group))
        assert {str(kernel.subject.workload) for kernel in kernels.values()} == {f"512x512x256 {group.kind}"}


def test_rungs_are_counted_by_the_cpu_machine(tmp_path):
    save_results(made_up.results("sgemm/shared_tile", sizes=SIZES), tmp_path / "sgemm.json")
    found = recorded.find_recorded([tmp_path])
    ((group, _),) = found.groups().values()
    jobs = jobs_of(group)
    counted, refused = count(jobs, found.arch)
    kernels = index_by_kernel(counted, jobs)
    assert not refused and list(kernels) == [("sgemm/shared_tile", "schedule"), ("sgemm/shared_tile", "twin")]
    tiles = 256 // 32
    assert kernels["sgemm/shared_tile", "twin"].access("shared_store").requests == tiles**3 * 32 * 2


def test_rungs_that_do_not_take_the_small_shape_are_not_counted():
    """hgemm/gemv takes a few rows or columns; compiling it for the small shape would end in a refusal."""
    groups = [group for group, _ in recorded.find_recorded(None).groups().values()]
    halves = [group for group in groups if next(iter(group.cells.values()))["family"] == "hgemm"]
    asked = [rung.name for group in halves for rung, _ in jobs_of(group, ["hgemm/gemv", "hgemm/repacked"])]
    assert "repacked" in asked and "gemv" not in asked


def test_a_counter_may_be_far_above_the_prediction_or_far_below():
    found = [Comparison("m", 1000, counted) for counted in (500.0, 995.0, 1000.0, 1250.0)]
    line = agreement.line_of("loads", found)
    assert (line.equal, line.noisy, line.beyond, line.worst) == (1, 1, 2, 1.0)


def test_long_names_leave_room_for_the_picture():
    import warnings

    groups = [group for group, _ in recorded.find_recorded(None).groups().values()]
    long = [group for group in groups if max(map(len, group.names)) > 2 * plots.BESIDE]
    few = min(long, key=lambda group: len(group.names))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert "<svg" in plots.sizes_svg(few, "sizes")


def test_launches_with_recorded_counters_are_told_apart():
    found = agreement.agreement_of(recorded.find_recorded([recorded.DEFAULT_FOLDER]).counters)
    names = [(launch.label, launch.kind) for launch in found.launches]
    assert any("launch 2" in label for label, _ in names) and len({*names}) == len(names)
