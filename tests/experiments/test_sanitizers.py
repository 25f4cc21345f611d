"""The corpus is packed whole, launched kernel by kernel, and what the tools print becomes a table; GPU and
tools are made up."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import corpus_kernels
import numpy as np
import pytest
import sanitizers
from fake_tools import installer

from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Binary

FILES = ("foreign_output", "transpose")


@pytest.fixture(scope="module")
def few():
    """Two files of the corpus."""
    chosen = tuple(file for file in corpus_kernels.corpus() if file.name in FILES)
    with pytest.MonkeyPatch.context() as patch:
        corpus_kernels.binaries.cache_clear()
        patch.setattr(corpus_kernels, "corpus", lambda: chosen)
        yield [case for file in chosen for case in file.cases]
    corpus_kernels.binaries.cache_clear()


@pytest.fixture(scope="module")
def packed(few, tmp_path_factory):
    path = tmp_path_factory.mktemp("sanitizers") / "c.zip"
    assert sanitizers.main(["pack", str(path), "--arch", "sm_80"]) == 0
    return path


class Device:
    """As a context, it does nothing."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class MadeUpGpu:
    """Launches on the CPU machine. arrays: what was allocated, and whether it was filled."""

    device, stream = Device(), None

    def __init__(self, few):
        self.ptx = {case.entry: corpus_kernels.binaries()[case.name].ptx for case in few}
        self.arrays, self.cooperative = [], None
        self.cupy = SimpleNamespace(
            cuda=SimpleNamespace(set_allocator=lambda allocator: None), empty=self.empty, asarray=self.filled
        )

    def empty(self, shape, dtype):
        self.arrays.append("empty")
        return Array(np.zeros(shape, dtype))

    def filled(self, value):
        self.arrays.append("filled")
        return Array(value.copy())

    def explaining(self, label):
        return Device()

    def synchronize(self):
        pass

    def describe(self):
        return {"name": "made up"}

    def load(self, binary):
        def function(grid, block, given, shared, stream, cooperative):
            assert (grid, block, shared) == (
                binary.kernel.grid,
                binary.kernel.block,
                binary.kernel.dynamic_shared,
            )
            arguments = {name: array.host for name, array in zip(binary.kernel.params, given)}
            compiled = Binary(binary.kernel, self.ptx[binary.kernel.entry], binary.cubin, binary.resources)
            CpuMachine().run(compiled, arguments, ("Y", "Z"))
            self.cooperative = cooperative

        return function


class Array:
    def __init__(self, host):
        self.host = host

    def get(self):
        return self.host


@pytest.fixture
def gpu(few, monkeypatch):
    machine = MadeUpGpu(few)
    monkeypatch.setattr(sanitizers, "choose", lambda name: machine)
    return machine


def test_a_launch_says_whether_the_outputs_are_right(packed, gpu, capsys):
    assert sanitizers.main(["launch", str(packed), "foreign_output"]) == 0
    assert capsys.readouterr().out == "right\n" and gpu.arrays == ["filled", "empty", "empty"]
    assert gpu.cooperative is False
    assert sanitizers.main(["launch", str(packed), "foreign_output:1"]) == 0
    assert capsys.readouterr().out.startswith("wrong; Z == ")


TOOL = """
import time
name = sys.argv[sys.argv.index("--tool") + 1] if "--tool" in sys.argv else ""
if not name:
    print("Compute Sanitizer version 2025.3")
elif name == "synccheck" and sys.argv[-1] == "transpose:1":
    time.sleep(600)
elif name == "racecheck":
    hazards = 2 * (sys.argv[-1] == "transpose:1")
    print(f"========= RACECHECK SUMMARY: {hazards} hazards displayed ({hazards} errors, 0 warnings)")
elif name == "initcheck":
    print("========= Error: no device")
elif name == "memcheck":
    print("========= ERROR SUMMARY: 0 errors")
"""


@pytest.fixture
def tools(tmp_path, monkeypatch):
    return installer(tmp_path, monkeypatch)("compute-sanitizer", TOOL)


def test_every_kernel_is_shown_to_every_tool(packed, gpu, tools, tmp_path, capsys, monkeypatch):
    really = sanitizers.told
    alone = {"transpose": "right", "transpose:1": "wrong; Y", "transpose:2": "right"}
    monkeypatch.setattr(
        sanitizers,
        "told",
        lambda name, entry, options: (
            alone[entry["name"]] if name == "alone" else really(name, entry, options)
        ),
    )
    result, names = tmp_path / "r.json", list(alone)
    command = ["run", str(packed), str(result), "--seconds", "6", "--jobs", "5", "--only", *names]
    assert sanitizers.main(command) == 0
    cases = json.loads(result.read_text())["cases"]
    assert list(cases) == names
    assert [cases["transpose:1"][tool] for tool in ("memcheck", "racecheck", "synccheck")] == [
        "-",
        "2",
        "hangs",
    ]
    assert cases["transpose"]["initcheck"] == "? ========= Error: no device"
    seen = cases["transpose:1"]["cpu"]
    assert "race" in seen.split() and cases["transpose"]["cpu"] == "-"
    out = capsys.readouterr().out
    row = f"no barrier between writing and reading the tile | race | {seen} | wrong | - | 2 | hangs | ?"
    assert f"| transpose:1 | {row}" in out
    assert "| race | 1 | 1 | 0 | 1 | 0, 1 hang | 0 |" in out and "| nothing | 1 | 0 | 0 | 0 | 0 | 0 |" in out
    arguments = [json.loads(line) for line in tools.read_text().splitlines()]
    assert {line[3] for line in arguments if line[-1] == "transpose:1"} == {"kernel_substring=transpose_1"}
    tools.unlink()
    assert sanitizers.main(command) == 0 and not tools.exists()  # has all of it
    cases["transpose"]["alone"] = "wrong; Y"
    result.write_text(json.dumps({"cases": cases}))
    assert sanitizers.main(["table", str(result)]) == 1
    assert "sound kernels that are not right on this GPU: transpose" in capsys.readouterr().err


def test_a_kernel_that_waits_for_ever_hangs(packed, tmp_path, monkeypatch):
    """Whoever waits for it: the launch ends itself too."""
    here = Path(__file__).parent
    monkeypatch.setenv("PYTHONPATH", f"{Path.cwd()}:{here / 'stand_in'}:{here.parent / 'machines'}")
    monkeypatch.setenv("CUPY_HANGS", "transpose_1")
    command = [sys.executable, sanitizers.__file__, "launch", "--seconds", "0.1", str(packed), "transpose:1"]
    assert subprocess.run(command).returncode == -signal.SIGALRM
    options = sanitizers.parser().parse_args(["run", str(packed), str(tmp_path / "r.json"), "--seconds", "3"])
    entry = {"name": "transpose:1", "entry": "transpose_1"}
    assert sanitizers.told("alone", entry, options) == "hangs"
    options.seconds = 60
    assert sanitizers.told("alone", entry | {"name": "transpose"}, options).startswith("wrong; Y")


def test_what_hangs_beside_others_is_launched_again(packed, gpu, tools, tmp_path, monkeypatch):
    """But not a deadlock that hangs, and under a tool not what hangs without one."""
    asked = []

    def told(name, entry, options):
        asked.append((entry["name"], name))
        slow = entry["name"] == "transpose" and name == "memcheck" and asked.count(asked[-1]) == 1
        return "hangs" if slow or entry["name"] == "transpose:1" else "right" if name == "alone" else "-"

    monkeypatch.setattr(sanitizers, "told", told)
    result = tmp_path / "r.json"
    command = ["run", str(packed), str(result), "--jobs", "4", "--only", "transpose", "transpose:1"]
    assert sanitizers.main(command) == 0
    written = json.loads(result.read_text())
    assert written["cases"]["transpose"]["memcheck"] == "-"
    assert {written["cases"]["transpose:1"][name] for name in ("alone", *sanitizers.SANITIZERS)} == {"hangs"}
    twice = {each for each in asked if asked.count(each) == 2}
    assert twice == {("transpose", "memcheck"), ("transpose:1", "alone")}
    assert written["runs"][0]["launches"] == len(asked) == 12 and written["runs"][0]["jobs"] == 4


def test_the_table_of_the_readme_is_what_is_recorded(capsys):
    assert sanitizers.main(["table", "--check"]) == 0


def test_other_files_are_bad_input(packed, gpu, tools, tmp_path, capsys):
    other = tmp_path / "other"
    other.write_text("[]")
    assert sanitizers.main(["table", str(other)]) == 2 and "is not a result" in capsys.readouterr().err
    assert sanitizers.main(["run", str(other), str(tmp_path / "r.json")]) == 2
    assert "is not a pack" in capsys.readouterr().err
