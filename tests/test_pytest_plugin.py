"""`pytest --tir-check`: comments of kernels as tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CUDA = """\
template <int T>
__global__ void fill(float *x) { x[threadIdx.x] = T; }
// check: --kernel 'fill<3>' --block 32 --arg f32[32]:out --expect x=3*ones(32)

// check: --kernel 'fill<4>' --block 32 --arg f32[31]
// check: --arch sm_80
"""
PYTHON = '''\
"""`load_inline` takes this."""
# check: --kernel halve --block 32 --arg x=f32[32] --expect 'x=x/2'
SOURCE = """
__global__ void halve(float *x) { x[threadIdx.x] *= 0.5f; }
"""
'''


@pytest.fixture
def run(tmp_path):
    """run(options): exit code and what pytest prints, with the plugin as an installation has it."""
    (tmp_path / "fills.cu").write_text(CUDA)
    (tmp_path / "plain.cu").write_text("__global__ void one() {}\n")
    (tmp_path / "halves.py").write_text(PYTHON)

    def call(*options, settings=""):
        (tmp_path / "pytest.ini").write_text(f"[pytest]\n{settings}\n")
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        variables = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTHONPATH": path}
        command = [sys.executable, "-m", "pytest", "-p", "tir_schedules.pytest_plugin", "-p",
                   "no:cacheprovider", *options]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **variables}
        )
        assert not done.stderr
        return done.returncode, done.stdout

    return call


def test_each_check_is_a_test_and_a_fault_is_told_as_check_tells_it(run):
    code, out = run("--tir-check", "--tir-check-python", "-v", ".")
    assert code == 1 and "1 failed, 2 passed" in out
    assert re.search(r"^fills\.cu::3 fill<3> PASSED", out, re.M)
    assert re.search(r"^halves\.py::2 halve PASSED", out, re.M)
    assert "___ fills.cu:5 fill<4> ___" in out
    assert "out_of_bounds: fills.cu:2 writes 4 bytes of x[31]" in out and "Traceback" not in out
    assert "0 hazards" not in out and "1 hazard on the CPU machine" in out


def test_one_of_them_by_its_name_and_by_settings(run):
    code, out = run("fills.cu::3 fill<3>", settings="tir_check = true")
    assert code == 0 and "1 passed" in out


def test_what_a_comment_says_wrong_is_one_line(run, tmp_path):
    (tmp_path / "fills.cu").write_text("// check: --bloc 3\n")
    code, out = run("--tir-check", "fills.cu")
    assert code == 2 and "\nfills.cu:1: " in out and "--bloc" in out and "Traceback" not in out


def test_without_the_option_it_does_nothing(run):
    code, out = run("-q", ".")
    assert code == pytest.ExitCode.NO_TESTS_COLLECTED and "no tests ran" in out


def test_it_imports_nothing_before_it_is_needed():
    program = "import sys, tir_schedules.pytest_plugin; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT).stdout
    ours = {name for name in told.split() if name.startswith("tir_schedules")}
    assert ours == {"tir_schedules", "tir_schedules.version", "tir_schedules.pytest_plugin"}
    assert not {"numpy", "rich", "tvm"} & set(told.split())


def test_it_is_installed_as_a_plugin():
    settings = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\ntir_schedules = "tir_schedules.pytest_plugin"\n' in settings
