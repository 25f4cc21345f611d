"""Rungs and ladders of one's own: the guide, and what can be wrong with a file."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import guide
import pytest

from tir_schedules.errors import BadInput
from tir_schedules.ladders import known
from tir_schedules.ladders.own import RUNGS
from tir_schedules.ladders.registry import find, find_each
from tir_schedules.tuning.space.tunable import space_of

SCHEDULE = "def schedule(sch, gemm, config):\n    {}\n"
RUNG = 'from tir_schedules.model.rung import Rung\n{}RUNG = Rung("sgemm", schedule=schedule)\n'
LINES = RUNG.format(SCHEDULE.format("pass"))
BOUND = """i, j, k = sch.get_loops(sch.get_sblock("C"))
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")"""
ROOT = Path(__file__).parents[2]
TWIN = 'extern "C" __global__ void sgemm_my_rung(const float *A, const float *B, float *C, int M, int N) {}'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of one's own, which commands run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    known.LOADED.clear()
    RUNGS.clear()


@pytest.fixture
def guided(folder):
    guide.write_files(folder)
    return folder


COMMANDS = guide.commands()


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=lambda n: " ".join(COMMANDS[n][0][:2]))
def test_the_guide_prints_what_it_says(number, guided, tool):
    arguments, lines = COMMANDS[number]
    code, out, err = tool(*arguments)
    assert guide.missing(lines, out) == [], out + err
    assert code == ("HAZARD" in "".join(lines))


def test_a_rung_is_a_script(guided):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "my_rung.py", "--mnk", "64,64,64"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0 and "__global__" in done.stdout and "sgemm_my_rung" in done.stdout, (
        done.stderr
    )


def test_a_ladder_is_listed_and_emitted(guided, tool):
    assert [line.split()[0] for line in tool("list", "./rowmax")[1].splitlines()] == [
        "rung", "rowmax/per_thread", "rowmax/per_warp"
    ]  # fmt: skip
    out = tool("emit", "./rowmax/per_warp.py", "--shape", "8,64")[1]
    assert "const float *X[8][64]" in out and "grid 8x1x1, block 32x1x1" in out
    out = tool("inspect", "./rowmax")[1]
    assert [line.split()[7] for line in out.splitlines()[1:5:2]] == ["32", "4"]  # sectors per load
    assert tool("bench", "./rowmax", "--pack", "x.zip", "--arch", "sm_90")[0] == 2


def test_a_ladder_is_found_by_its_entry_point(guided, tool, monkeypatch):
    about = guided / "mine-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[{known.GROUP}]\nrowmax = rowmax\nnone = not_there\n")
    monkeypatch.syspath_prepend(guided)
    known.installed.cache_clear()
    try:
        assert [rung.id for rung in find("rowmax")] == ["rowmax/per_thread", "rowmax/per_warp"]
        assert tool("run", "rowmax/per_warp")[0] == 0
        code, _, err = tool("run", "none")
        assert code == 2 and "the ladder none, installed as not_there, does not load: ModuleNotFound" in err
        (about / "entry_points.txt").write_text(f"[{known.GROUP}]\nrowmax = rowmax\n")
        known.installed.cache_clear()
        assert "rowmax/per_warp" in tool("list")[1] and "rowmax/per_warp" in tool("list", "rowmax")[1]
    finally:
        monkeypatch.undo()
        known.installed.cache_clear()


def test_a_twin_beside_the_rung_is_run_and_may_be_wrong(guided, tool):
    (guided / "my_rung.cu").write_text(TWIN)
    code, out, _ = tool("run", "my_rung.py", "--mnk", "8,8,8")
    assert code == 1 and "pass      FAIL" in out
    assert tool("emit", "--twin", "my_rung.py", "--mnk", "8,8,8")[1].endswith(TWIN + "\n")


def test_a_changed_file_is_another_rung(folder, tool):
    (folder / "mine.py").write_text(RUNG.format(SCHEDULE.format(BOUND)))
    assert tool("run", "mine.py", "--mnk", "8,8,8")[0] == 0
    (folder / "mine.py").write_text(RUNG.format(SCHEDULE.format(BOUND.replace("i, j, k", "j, i, k"))))
    assert "grid 8x1x1, block 16x1x1" in tool("emit", "mine.py", "--mnk", "16,8,8")[1]


def test_a_rung_goes_to_other_processes_as_its_file(guided):
    path = guided / "tiled.py"  # with a function that has no name to be found by
    path.write_text(path.read_text().replace("refuses=refuses", "refuses=lambda gemm, config: ''"))
    (rung,) = find("tiled.py:deep,rows=16")
    again = pickle.loads(pickle.dumps(rung))
    assert (again.id, again.config, again.file) == (rung.id, rung.config, rung.file)
    code = "import pickle, sys, tir_schedules.ladders.own; print(pickle.load(sys.stdin.buffer).config.rows)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(rung), env=environment, capture_output=True
    )
    assert done.stdout == b"16\n", done.stderr


def test_a_pack_of_ones_own_rung_is_read_without_it(guided, tool):
    from tir_schedules.subjects.packs import load_pack

    assert tool("bench", "my_rung.py", "--sizes", "1024", "--arch", "sm_90", "--pack", "x.zip")[0] == 0
    (guided / "my_rung.py").unlink()
    assert [each.label for each in load_pack(guided / "x.zip").subjects] == [
        "sgemm/my_rung (schedule)",
        "cuBLAS",
        "cuBLASLt",
    ]


def test_the_space_has_what_the_rung_does_not_refuse(guided):
    (rung,) = find("tiled.py")
    workload = known.workload_class("sgemm")(64, 64, 64)
    assert space_of(rung.id).size(workload, "sm_80") == 18
    path = guided / "tiled.py"
    path.write_text(path.read_text().replace("> 1024", "> 512"))
    (rung,) = find("tiled.py")
    assert space_of(rung.id).size(workload, "sm_80") == 15


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "x.py has no rung: it takes one, such as RUNG = Rung"),
        (LINES + "OTHER = Rung('sgemm', 'other', schedule=schedule)", "x.py has 2 rungs, RUNG, OTHER"),
        ("import nothing_there", "x.py cannot be loaded: x.py:1: ModuleNotFoundError: No module named"),
        ("a = \n", "x.py cannot be loaded: x.py:1: SyntaxError: invalid syntax"),
        ("raise SystemExit(3)", "x.py cannot be loaded: x.py:1: SystemExit: 3"),
        (
            LINES.replace('"sgemm"', '"sgem"'),
            "x.py: there is no ladder 'sgem', did you mean 'sgemm'?",
        ),
        (LINES.replace('"sgemm"', '"sgemm", "naive"'), "x.py: there is a rung sgemm/naive already"),
        (
            LINES.replace('"sgemm"', '"sgemm", "a b"'),
            "a rung's name is letters, digits and _, not 'a b'",
        ),
        (LINES.replace("schedule=schedule", "config=3, schedule=schedule"), "a configuration is a dataclass"),
        (LINES.replace("schedule=schedule", "schedule=3"), "x.py: schedule is 3, not a function schedule"),
        (LINES.replace("=schedule", "=schedule, values={'bm': (1,)}"), "values has for each field"),
        (LINES, "cannot be tuned: it names no values of fields to try"),
    ],
)
def test_a_file_that_is_no_rung_is_one_line(text, message, folder, tool):
    (folder / "x.py").write_text(text)
    code, out, err = tool("tune", "x.py")
    assert code == 2 and message in err and err.count("\n") == 1 and not out


@pytest.mark.parametrize(
    "body, message",
    [
        ("nothing", "sgemm/x: x.py:3: NameError: name 'nothing' is not defined"),
        ("raise ValueError('no')", "sgemm/x: x.py:3: ValueError: no"),
        ("raise SystemExit(0)", "sgemm/x: x.py:3: SystemExit: 0"),
        ("sch.get_sblock('D')", "sgemm/x: TVM refuses the schedule for 8x8x8 (x.py:3): "),
        ("pass", "sgemm_x: the schedule must end in one CUDA kernel; bind its loops"),
        (BOUND + "\n    sch.compute_inline(sch.get_sblock('C'))", "sgemm/x: TVM refuses the schedule"),
    ],
)
def test_a_schedule_that_fails_is_an_error_with_its_line(body, message, folder, tool):
    (folder / "x.py").write_text(RUNG.format(SCHEDULE.format(body)))
    code, out, _ = tool("run", "x.py", "--mnk", "8,8,8")
    assert code == 1 and message in out and "ERROR" in out


def test_a_rung_that_computes_something_else_fails(folder, tool):
    shorter = "lambda gemm, config, name: replace(gemm, k=4).prim_func(name)"
    text = LINES.replace("pass", BOUND).replace("=schedule)", f"=schedule, prim_func={shorter})")
    (folder / "x.py").write_text("from dataclasses import replace\n" + text)
    code, out, _ = tool("run", "x.py", "--mnk", "8,8,4")
    assert code == 0, out
    code, out, _ = tool("run", "x.py", "--mnk", "8,8,8")
    assert code == 1 and "FAIL" in out


def test_two_files_of_one_name_and_paths_without_a_rung(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "x.py").write_text(LINES)
    with pytest.raises(BadInput, match="a/x.py and b/x.py have both the name sgemm/x: give one another"):
        find_each(["a/x.py", "./b/x.py"])
    assert len(find_each(["a/x.py", "./a/x.py"])) == 1
    with pytest.raises(BadInput, match="there is no file gone.py"):
        find("gone.py")
    with pytest.raises(BadInput, match="is not a ladder: it has no __init__.py"):
        find("./a")
    (folder / "a" / "__init__.py").write_text("LADDER = 3")
    with pytest.raises(BadInput, match="__init__.py has no ladder: LADDER = Ladder"):
        find("./a")


def test_a_ladder_names_files_that_are_there(guided):
    (guided / "rowmax" / "per_warp.py").unlink()
    with pytest.raises(BadInput, match="the ladder rowmax names the rung 'per_warp', but there is no "):
        find("./rowmax")
    page = guided / "rowmax" / "__init__.py"
    page.write_text(page.read_text().replace('Ladder("rowmax"', 'Ladder("sgemm"'))
    with pytest.raises(BadInput, match="there is a ladder 'sgemm' already"):
        find("./rowmax")


def test_a_file_of_this_package_is_its_rung():
    from tir_schedules.ladders.sgemm import naive

    assert find(naive.__file__) == [naive.RUNG]


OUTSIDE = {
    "a reduction bound to threads": (
        'sch.bind(sch.get_loops(sch.get_sblock("C"))[2], "threadIdx.x")',
        "line.py:3: loop k is a reduction of block C, and is bound to threadIdx.x: bind loops of the output",
    ),
    "a copy outside of the kernel": (
        f'sch.cache_read(sch.get_sblock("C"), 0, "shared")\n    {BOUND}',
        "line.py:3: block A_shared is outside of the loops that are bound to blockIdx",
    ),
}


@pytest.mark.parametrize("steps, said", OUTSIDE.values(), ids=OUTSIDE)
def test_what_a_schedule_leaves_outside_of_the_kernel_is_told_with_its_line(folder, tool, steps, said):
    (folder / "line.py").write_text(RUNG.format(SCHEDULE.format(steps)))
    code, out, _ = tool("run", "./line.py", "--mnk", "32,32,32")
    assert code == 1 and said in " ".join(out.split())
