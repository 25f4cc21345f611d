"""`check --sarif`: what SARIF 2.1.0 asks for is there, and every finding stands at its line."""

import json
import re
from pathlib import Path

import pytest

from tir_schedules.model.findings import KINDS

HEADER = """\
__device__ void put(float *y, int i, float v) {
  y[i] = v;
}
"""
FILE = """\
#include "inc/put.cuh"
// check: --kernel shifted --block 64 --arg x=f32[63] --arg y=f32[64]:out --expect 'y=0*x[0]'
__global__ void shifted(const float *x, float *y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  put(y, threadIdx.x + 1, s[63 - threadIdx.x]);
}

// check: --kernel far --let n=32 --block 32 --arg x=f32[4096] --arg y=f32[32]:out --expect 'y=x[::128]'
__global__ void far(const float *x, float *y, int n) {
  if (n > 1000)
    for (int i = 0; i < n; ++i) y[i] += x[i];
  y[threadIdx.x] = x[threadIdx.x * 128];
}
"""


@pytest.fixture
def log(tool, tmp_path, monkeypatch):
    """log(*files): the exit code and the one run of the log."""
    (tmp_path / "sub" / "inc").mkdir(parents=True)
    (tmp_path / "sub" / "inc" / "put.cuh").write_text(HEADER)
    (tmp_path / "sub" / "my kernels.cu").write_text(FILE)
    monkeypatch.chdir(tmp_path)

    def check(*words):
        code, _, _ = tool("check", *words, "--sarif", "out.sarif")
        log = json.loads(Path("out.sarif").read_text())
        assert log["version"] == "2.1.0" and "sarif-2.1.0" in log["$schema"]
        (run,) = log["runs"]
        assert_valid(run)
        return code, run

    return check


def assert_valid(run):
    """The fields that the schema and GitHub ask for."""
    driver = run["tool"]["driver"]
    rules = [rule["id"] for rule in driver["rules"]]
    assert driver["name"] and len(set(rules)) == len(rules) and set(KINDS) <= set(rules)
    assert all(rule["help"]["text"] and rule["shortDescription"]["text"] for rule in driver["rules"])
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"] and result["message"]["text"]
        assert result["level"] in ("error", "warning", "note")
        for place in (*result["locations"], *result.get("relatedLocations", ())):
            physical = place["physicalLocation"]
            assert re.fullmatch(r"[\w./%:-]+", physical["artifactLocation"]["uri"])
            assert physical["region"]["startLine"] >= 1


def places(run):
    """(rule, file, line) of each result."""
    found = []
    for result in run["results"]:
        physical = result["locations"][0]["physicalLocation"]
        name = physical["artifactLocation"]["uri"].rpartition("/")[2]
        found.append((result["ruleId"], name, physical["region"]["startLine"]))
    return found


def test_findings_stand_at_their_lines(log):
    code, run = log("sub/my kernels.cu")
    found = places(run)
    assert code == 1 and run["invocations"][0]["executionSuccessful"]
    file = "my%20kernels.cu"
    wanted = {("race", file, 5), ("out_of_bounds", file, 5), ("out_of_bounds", "put.cuh", 2),
              ("wrong_value", "put.cuh", 2), ("not_executed", file, 12), ("cost", file, 13)}  # fmt: skip
    assert wanted <= set(found) and len(found) == len(set(map(str, run["results"])))
    race = run["results"][found.index(("race", file, 5))]
    assert race["level"] == "error" and "no __syncthreads between" in race["message"]["text"]
    (other,) = race["relatedLocations"]
    assert other["physicalLocation"]["region"]["startLine"] == 6
    header = run["results"][found.index(("out_of_bounds", "put.cuh", 2))]["locations"][0]
    assert header["physicalLocation"]["artifactLocation"] == {
        "uri": "sub/inc/put.cuh",
        "uriBaseId": "%SRCROOT%",
    }
    assert run["results"][found.index(("cost", file, 13))]["level"] == "note"


def test_what_does_not_compile_and_what_cannot_be_asked(log):
    Path("typo.cu").write_text("// check: --block 1\n__global__ void k() {\n  int i = j;\n}\n")
    code, run = log("typo.cu")
    assert code == 1 and places(run) == [("not_run", "typo.cu", 3)]
    Path("wrong.cu").write_text("// check: --block many\n")
    code, run = log("wrong.cu")
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert code == 2 and not run["invocations"][0]["executionSuccessful"] and not run["results"]
    assert "wrong.cu:1" in told["message"]["text"]


def test_ptx_is_named_by_its_own_lines(log):
    code, run = log("examples/kernel.ptx", "--block", "128", "--arg", "f32[100]", "--arg", "f32[128]:out",
                    "--arg", "128")  # fmt: skip
    assert code == 1 and ("out_of_bounds", "kernel.ptx", 26) in places(run)
