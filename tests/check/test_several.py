"""`check` of several files, each by its comments, and `--watch`."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from killing import PATIENCE

from tir_schedules.cli import watching
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.machines.choice import choose
from tir_schedules.source import read_source

GOOD = "// check: --kernel k --block 32 --arg f32[32]\n__global__ void k(float *x) { x[threadIdx.x] = 1; }\n"
BAD = GOOD.replace("x[threadIdx.x]", "x[threadIdx.x + 1]")


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {"good.cu": GOOD, "bad.cu": BAD, "plain.cu": "__global__ void k() {}\n",
             "comment.cu": "// check: --block many\n", "helper.cuh": ""}  # fmt: skip
    for name, text in texts.items():
        Path(name).write_text(text)


class TestSeveral:
    def test_each_is_checked_and_the_worst_code_counts(self, tool):
        code, out, told = tool("check", "good.cu", "bad.cu", "plain.cu", "comment.cu")
        assert code == 2
        assert (
            out.index("good.cu:\n") < out.index("0 hazards") < out.index("bad.cu:\n") < out.index("1 hazard ")
        )
        assert "3 files: 1 without a fault, 1 with: bad.cu, 1 not checked: comment.cu\n" in out
        assert "plain.cu has no `// check:` comment, and is left out\n" in told
        assert "comment.cu:1: --block 'many'" in told
        assert tool("check", "good.cu", "bad.cu")[0] == 1 and tool("check", "good.cu", "plain.cu")[0] == 0

    def test_json_names_the_file(self, tool):
        code, out, _ = tool("check", "good.cu", "bad.cu", "--json")
        assert code == 1
        assert [(one["file"], one["ok"]) for one in json.loads(out)] == [("good.cu", True), ("bad.cu", False)]

    @pytest.mark.parametrize("option", ("--kernel", "--let", "--as=reduce", "--num-warps=4", "-o"))
    def test_options_of_one_file_are_refused(self, tool, option):
        words = [option] if "=" in option else [option, "n=3"]
        code, _, told = tool("check", "good.cu", "bad.cu", *words)
        spelled = {"-o": "--page"}.get(option, option.partition("=")[0])
        assert code == 2 and f"{spelled} is for one file" in told

    def test_options_of_all_are_taken(self, tool):
        assert tool("check", "good.cu", "bad.cu", "-D", "T=1", "--seed", "3", "--orders", "1")[0] == 1

    def test_files_without_a_check(self, tool):
        code, _, told = tool("check", "plain.cu", "helper.cuh")
        assert code == 2 and "no file has a `// check:` comment" in told


def test_what_is_checked_at_another_time_is_compiled_along(monkeypatch):
    """Templates are compiled once for all checks of a file, whichever is run."""
    from tir_schedules.check import session
    from tir_schedules.check.options import requests_of
    from tir_schedules.cli.main import parser

    head = "// check: --block 1 --kernel 'k<{}>'\n\n"
    Path("made.cu").write_text("template <int T> __global__ void k() {}\n" + head.format(1) + head.format(2))
    options = parser().parse_args(["check", "made.cu"])
    first, second = requests_of(options, read_source(Path("made.cu")), "sm_80")
    asked = []

    def build(source, names, options):
        asked.append(names)
        raise CheckFailed("enough")

    monkeypatch.setattr(session, "build", build)
    assert [*session.check_requests([second], choose("cpu"), [first, second])]
    assert asked == [["k<1>", "k<2>"]]


class TestWatch:
    def test_what_changes_is_checked_again(self, monkeypatch, capsys):
        """Each look at the files takes the next step: nothing, an edit, an editor's two steps, Ctrl-C."""
        Path("good.cu").write_text('#include "helper.cuh"\n' + GOOD)
        performed, looks = [], []

        def perform():
            performed.append(len(looks))
            if len(performed) == 2:
                raise BadInput("what is told")
            return 1

        steps = [
            lambda: None,
            lambda: Path("helper.cuh").write_text("// longer"),
            lambda: Path("good.cu").unlink(),
            lambda: Path("good.cu").write_text(GOOD),
        ]

        def sleep(seconds):
            if len(looks) == len(steps):
                raise KeyboardInterrupt
            steps[len(looks)]()
            looks.append(seconds)

        monkeypatch.setattr(watching.time, "sleep", sleep)
        with pytest.raises(KeyboardInterrupt):
            watching.watch(perform, lambda: watching_files("good.cu"))
        assert performed == [0, 2, 4]
        out, told = capsys.readouterr()
        assert out.splitlines() == ["watching good.cu, helper.cuh; Ctrl-C ends"] * 2 + [
            "watching good.cu; Ctrl-C ends"
        ]
        assert told == "tir-schedules: what is told\n"

    def test_a_command_that_watches_ends_by_ctrl_c(self):
        command = [sys.executable, "-m", "tir_schedules", "check", "good.cu", "bad.cu", "--watch"]
        path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        assert process.stdout and process.stderr
        line = ""
        while not line.startswith("watching good.cu, bad.cu"):
            line = process.stdout.readline()
            assert line, process.stderr.read()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE)
        assert (process.returncode, told) == (130, "tir-schedules: interrupted\n")


def watching_files(name):
    from argparse import Namespace

    from tir_schedules.cli.several import watched_files

    return watched_files(Namespace(files=[Path(name)], includes=None))
