"""What TVM made of a schedule is kept, and asked for again under the same circumstances alone."""

import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import wraps

import pytest

from tir_schedules.compiler import code, emitted
from tir_schedules.compiler.code import KEEP
from tir_schedules.compiler.emitted import Emitted, load_or_make
from tir_schedules.compiler.lower import lower
from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import find
from tir_schedules.model.launch import Launch, TensorMap
from tir_schedules.workloads.gemm import Gemm

NAIVE, GEMM = find("sgemm/naive")[0], Gemm(64, 64, 64)
MAP = TensorMap("A_map", "A", "float16", (64, 32), (64,), (16, 32), swizzle=64)
LAUNCH = Launch((1, 2, 3), (32, 1, 1), 16, (2, 1, 1), (MAP,))


@pytest.fixture
def made(monkeypatch, tmp_path):
    """made(rung, workload, arch): which lowering answers, numbered from 1."""
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path))
    lowerings = []

    def make():
        lowerings.append(1)
        return Emitted(str(len(lowerings)), ("A",), LAUNCH)

    return lambda rung=NAIVE, workload=GEMM, arch="sm_80": int(
        load_or_make(rung, workload, arch, make).source
    )


def test_the_same_is_lowered_once(made, tmp_path):
    assert made() == made() == 1
    found = load_or_make(NAIVE, GEMM, "sm_80", lambda: pytest.fail("lowers again"))
    assert found == Emitted("1", ("A",), LAUNCH)


def test_what_lowering_depends_on_makes_another_entry(made, monkeypatch):
    asked = [
        (NAIVE, GEMM, "sm_80"),
        (NAIVE, GEMM, "sm_90"),
        (NAIVE, Gemm(64, 64, 65), "sm_80"),
        (find("sgemm/coalesced")[0], GEMM, "sm_80"),
        *((rung, GEMM, "sm_80") for rung in find("sgemm/multistage")[0].variants()[:3]),
    ]
    assert [made(*each) for each in asked] == list(range(1, len(asked) + 1))
    monkeypatch.setattr(emitted, "CODE", "other code")
    assert made(*asked[0]) == len(asked) + 1


@dataclass(frozen=True)
class Own:
    """Of two different ones the repr is the same."""

    ts: int = field(default=32, repr=False)


@pytest.mark.parametrize(
    "own",
    [
        {"schedule": lambda *given: None},
        {"launch": wraps(NAIVE.launch)(lambda *given: None)},
        {"config": Own(16)},
    ],
)
def test_a_rung_of_others_is_lowered_anew(made, own):
    rung = replace(NAIVE, **own)
    assert [made(rung), made(rung)] == [1, 2]


def test_a_function_in_the_place_of_ours_is_not_ours(made, monkeypatch):
    wrapped = wraps(NAIVE.schedule)(lambda *given: None)
    monkeypatch.setattr(sys.modules[NAIVE.schedule.__module__], "schedule", wrapped)
    assert [made(replace(NAIVE, schedule=wrapped)) for _ in "12"] == [1, 2]


def test_in_a_process_that_is_no_command_all_is_lowered_anew(made, monkeypatch):
    assert made() == 1
    monkeypatch.delenv(KEEP)
    assert made() == 2


def test_a_command_says_so_for_itself_and_what_it_starts():
    script = (
        "import os; from tir_schedules.cli.endings import command;"
        " command(lambda: print(os.environ['TIR_SCHEDULES_KEEP']))"
    )
    environment = {name: value for name, value in os.environ.items() if name != KEEP}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.stdout == "1\n"


def test_a_cache_that_cannot_be_used_is_no_obstacle(made, monkeypatch):
    class Full:
        def load(self, *given):
            raise BadInput("the disk is full")

    monkeypatch.setattr(emitted, "default_cache", Full)
    assert [made(), made()] == [1, 2]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"launch": 3, "source": "", "params": []}'])
def test_an_entry_that_cannot_be_read_is_built_again(tmp_path, text):
    (tmp_path / emitted.FILE).write_text(text)
    with pytest.raises(FileNotFoundError):
        emitted.read(tmp_path)


def test_the_code_is_what_python_imports(tmp_path):
    """Not what an editor leaves there: locks, which lead nowhere, and files of another encoding."""
    (tmp_path / "a.py").write_bytes(b"# caf\xe9\n")
    (tmp_path / ".#a.py").symlink_to("someone@somewhere.123")
    (tmp_path / "b.txt").write_text("")
    assert list(code.contents(tmp_path, "x")) == [("x/a.py", b"# caf\xe9\n")]
    (tmp_path / "b.cuh").write_text("// 1\n")
    assert list(code.contents(tmp_path, "x", ".cuh")) == [("x/b.cuh", b"// 1\n")]


def test_a_workload_of_others_is_lowered_anew(made):
    class Own(Gemm):
        pass

    assert [made(workload=Own(64, 64, 64)), made(workload=Own(64, 64, 64))] == [1, 2]


def test_a_replaced_function_of_ours_counts(made, monkeypatch):
    assert made() == 1
    monkeypatch.setattr("tir_schedules.tir.schedule.bind_grid", lambda *given: None, raising=False)
    assert made() == 2


def test_what_is_kept_needs_no_tvm():
    kernel = lower(NAIVE, GEMM, "sm_80")
    script = (
        "import sys; from tir_schedules.compiler.lower import lower;"
        " from tir_schedules.ladders.registry import find; from tir_schedules.workloads.gemm import Gemm;"
        " print(lower(find('sgemm/naive')[0], Gemm(64, 64, 64), 'sm_80'), 'tvm' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == f"{kernel} False\n"
