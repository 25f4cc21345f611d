"""What `import tir_schedules as ts` offers: names, cheap imports, results as text, HTML and JSON, errors."""

import inspect
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import reference_tables

import tir_schedules as ts
from tir_schedules.api.wording import reworded
from tir_schedules.model.workload import Workload

ROOT = Path(__file__).parents[2]
SMALL = {"mnk": (16, 24, 8)}
COMMAND = ("--mnk", "16,24,8")


def test_the_names_are_those_of_the_reference_page():
    assert reference_tables.main(["--check"]) == 0
    with pytest.raises(SystemExit, match="2"):
        reference_tables.main(["nope"])
    page = reference_tables.PAGE.read_text()
    assert re.findall(r"^### (\w+)$", page, re.M) == reference_tables.order_of(dir(ts))
    assert dir(ts) == sorted(ts.__all__) and page == reference_tables.page(), (
        "python experiments/reference_tables.py"
    )


def test_every_name_says_what_it_is():
    for name in dir(ts):
        assert inspect.getdoc(getattr(ts, name)), name
    assert ts.Workload is Workload
    with pytest.raises(AttributeError, match="has no attribute 'rnu'"):
        ts.rnu  # noqa: B018


def test_functions_stay_when_modules_of_their_names_are_imported():
    for name in ("run", "check", "bench", "emit", "ladders"):
        module = import_module(f"tir_schedules.{name}")
        public = getattr(ts, name)
        assert callable(public) and not isinstance(public, ModuleType)
        assert public.__file__ == module.__file__
    assert inspect.signature(ts.check).parameters.keys() >= {"expect", "beside"}
    import tir_schedules.check.types

    assert callable(tir_schedules.check)
    assert tir_schedules.check.types.__name__ == "tir_schedules.check.types"


def test_what_a_module_has_can_be_replaced_by_its_name(monkeypatch):
    module = import_module("tir_schedules.run")
    with monkeypatch.context() as patched:
        patched.setattr("tir_schedules.run.os", None)
        assert module.os is None
    assert module.os is not None


@pytest.mark.parametrize(
    "code, absent",
    [
        ("ts", "numpy tvm rich tir_schedules.api"),
        ("ts.BadInput, dir(ts)", "numpy tvm tir_schedules.api"),
        ("str(ts.ladders()), ts.ladders().to_json(), ts.rung('sgemm/naive')", "tvm torch"),
        ("ts.workload('sgemm', mnk=(8, 8, 8)).arguments()", "tvm torch"),
        ("ts.check('__global__ void k() {}', block=32)", "tvm torch"),
    ],
)
def test_imports_are_cheap(code, absent):
    line = (
        f"import sys, tir_schedules as ts; {code}; print([m for m in {absent.split()!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


RUN = ("run", "sgemm/naive", "--machine", "cpu")
PREDICT = ("bench", "sgemm/naive", "--predict")
VERBS = {
    "list": (lambda: ts.ladders("reduce"), ["list", "reduce"]),
    "run": (lambda: ts.run("sgemm/naive", machine="cpu", **SMALL), [*RUN, *COMMAND]),
    "inspect": (lambda: ts.inspect("sgemm/naive", **SMALL), ["inspect", "sgemm/naive", *COMMAND]),
    "trace": (lambda: ts.trace("sgemm/naive", **SMALL), ["trace", "sgemm/naive", *COMMAND]),
    "bench": (lambda: ts.bench("sgemm/naive", predict="h200", **SMALL), [*PREDICT, *COMMAND]),
}  # fmt: skip


def timeless(text):
    return re.sub(r"\d+\.\d+(e-\d+)?", "0", text)


@pytest.mark.parametrize("call, words", VERBS.values(), ids=VERBS)
def test_a_result_is_what_the_verb_prints(capsys, tool_of, call, words):
    result = call()
    assert (
        timeless(json.dumps(result.to_json(), indent=1)).split()
        == timeless(tool_of(*words, "--json")).split()
    )
    printed = tool_of(*words).replace(" (small, for the CPU machine; --mnk names another)", "")
    text = re.sub(r"^tir-schedules: left out .*", "", str(result), flags=re.M)  # on standard error
    assert timeless(text).split() == timeless(printed).split()
    assert repr(result).startswith(f"{type(result).__name__}(") and len(repr(result)) < 150 and result.ok
    html = result._repr_html_()
    assert "<table>" in html or "<iframe srcdoc" in html
    assert capsys.readouterr().err == ""


@pytest.fixture
def tool_of(capsys):
    """Runs the command; returns what it prints."""
    from tir_schedules.cli.main import main

    def call(*words):
        assert main([*words]) == 0
        return capsys.readouterr().out

    return call


def test_emit_is_what_the_verb_prints(tool_of):
    code = ts.emit("sgemm/naive", twin=True, **SMALL)
    assert f"{code.text}" == str(code) == tool_of("emit", "sgemm/naive", "--twin", *COMMAND)
    assert ts.emit(ts.rung("sgemm/naive"), workload=ts.workload("sgemm", **SMALL)).text.startswith(
        "// sgemm/naive"
    )
    assert code._repr_html_().count("<pre>") == 1 and code.to_json()["form"] == "cuda"


def test_a_rung_is_checked_with_its_twin(tmp_path):
    result = ts.check("sgemm/naive", **SMALL)
    assert result.ok and result.beside.ok and result.identical
    broken = ts.emit("sgemm/shared_tile", **SMALL).text.replace("__syncthreads();", "", 1)
    verdicts = ts.run("sgemm/shared_tile", source=broken, machine="cpu", **SMALL)
    assert not verdicts.ok and "race" in str(verdicts) and verdicts.faults
    file = tmp_path / "my_rung.py"
    file.write_text(
        "from tir_schedules import Rung\n\nRUNG = Rung('sgemm', schedule=lambda sch, work, config: None)\n"
    )
    assert ts.rung(str(file)).id == "sgemm/my_rung"
    assert ts.check(file, **SMALL).verdict == "ERROR"


TWO = """\
__global__ void one(float *x) { x[threadIdx.x] += 1; }
__global__ void two(float *x) { x[threadIdx.x] = 1 + x[threadIdx.x]; }
"""
ONE = {"block": 32, "arguments": {"x": "f32[32]"}}
COMMENTED = f"""\
{TWO}// check: --kernel one --let n=64 --block n --arg x=f32[n] --expect x='x + 1'

// check: --kernel two --block 32 --arg x=f32[32] --expect x='x + 2'
"""


def test_one_kernel_of_several_is_beside_another():
    for beside in ({"beside": TWO, "beside_kernel": "two"}, {"beside": COMMENTED, "beside_kernel": "two"}):
        both = ts.check(TWO, "one", **ONE, **beside)
        assert both.identical and [one.label for _, one in both.checked] == ["one", "two"]
    costs = ts.inspect(TWO, kernel="one", beside=TWO, beside_kernel="two", **ONE)
    assert [*costs.launches] == ["one", "two"]


def test_comments_of_a_file_say_what_is_checked(tmp_path, tool_of):
    file = tmp_path / "mine.cu"
    file.write_text(COMMENTED)
    both, one = ts.check(file), ts.check(file, "one")
    assert (both.verdict, len(both.checked), one.verdict) == ("FAIL", 2, "pass") and len(both.faults) == 1
    assert one.outputs["x"].shape == (64,) and ts.check(file, "one", sizes={"n": 32}).outputs["x"].size == 32
    ones = ts.check(file, "one", arguments={"x": np.ones(64, np.float32)}, expect={"x": np.full(64, 3.0)})
    assert ones.verdict == "FAIL" and "should be 3" in ones.faults[0]
    assert [*ts.inspect(file).launches] == ["one", "two"]
    assert timeless(str(one)).split() == timeless(tool_of("check", str(file), "--kernel", "one")).split()


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: ts.rung("sgemm/nave"), "did you mean 'sgemm/naive'?; ladders() has all"),
        (lambda: ts.rung("sgemm"), "rung takes one rung, such as sgemm/naive"),
        (lambda: ts.ladders("gemm"), "there is no ladder 'gemm'"),
        (lambda: ts.run("sgemm/naive", mnk=64), "mnk= takes three integers M,N,K such as 1024,512,256, not"),
        (lambda: ts.run("sgemm/naive", dtype="float16"), "dtype= is for reduce and hgemm; sgemm/naive takes"),
        (lambda: ts.run("sgemm/naive", mkn=(1, 2, 3)), "run takes no 'mkn', did you mean 'mnk'"),
        (lambda: ts.run("sgemm/naive", arguments={}), "arguments is for a kernel of your own"),
        (lambda: ts.run("reduce/tree", n="many"), "n= takes a number of elements"),
        (lambda: ts.run("none.cu"), "run takes a rung or a function of TVM's, not a file"),
        (lambda: ts.run(3), "run takes a rung or a function of TVM's, not int '3'"),
        (lambda: ts.run("sgemm/naive", machine="tpu"), "machine is 'tpu'; it can be"),
        (lambda: ts.check("sgemm/naive", expect={"C": "A @ B"}), "expect is for a kernel of your own"),
        (lambda: ts.check("none.cu", block=32), "none.cu"),
        (lambda: ts.check("// check: --grid 4\n__global__ void k() {\n}\n"), "such as grid=4 block=256, or"),
        (lambda: ts.check(TWO, beside=TWO, block=32), "name one by kernel=: one(float* x); two(float* x)"),
        (lambda: ts.check(TWO, "one", beside=TWO, **ONE), "name one by beside_kernel=: one(float* x); two("),
        (lambda: ts.check(TWO, "one", beside_kernel="two", **ONE), "beside_kernel= names the second kernel"),
        (lambda: ts.check("__global__ void k(float *x) {\n}\n", block=32), "arguments={\"x\": 'f32[N]'}"),
        (lambda: ts.inspect("sgemm/naive", view="line"), "view is 'line'; it can be lines"),
        (lambda: ts.inspect("sgemm", view="lines"), "lines= shows one rung"),
        (lambda: ts.trace("sgemm"), "trace takes one rung"),
        (lambda: ts.bench(), "bench takes rungs or ladders"),
        (lambda: ts.bench("sgemm/naive", predict="h300"), "h300"),
        (lambda: ts.tune("sgemm/naive", trials=0), "trials"),
        (lambda: ts.tune("sgemm/fastest"), "sgemm/fastest"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_in_the_words_of_python(call, told):
    with pytest.raises(ts.BadInput, match=re.escape(told)) as raised:
        call()
    assert "\n" not in str(raised.value) and "--" not in str(raised.value)


def test_a_message_has_no_commands_of_a_terminal():
    with pytest.raises(ts.BadInput, match=r"there is no file \./no\\x1b\[31m\.py"):
        ts.run("./no\x1b[31m.py")


def test_messages_name_options_as_python_has_them():
    assert reworded("use --machine cpu; see `tir-schedules run --help`") == 'use machine="cpu"'
    assert reworded("say --expect y=... or --let n=4") == 'say expect={"y": ...} or sizes={"n": \'4\'}'
    assert reworded("leave out --num-warps and a--b") == "leave out num_warps= and a--b"
    assert reworded("say --mnk 64,64,8 --records FILE") == "say mnk=(64, 64, 8) records=FILE"
    given = {"arguments": {"x": "f32[32]", "y": "f32[32]:out"}, "expect": {"y": np.ones(32)}}
    found = ts.check("__global__ void k(int n, float *x, float *y) {\n y[threadIdx.x] = x[--n]; }", block=32,
                     sizes={"n": 4}, **given)  # fmt: skip
    assert "need a tolerance=)" in found.faults[0] and "x[--n]" in found.faults[0]


def test_the_example_of_the_guide_runs(monkeypatch, tmp_path):
    page = (ROOT / "tir_schedules" / "guides" / "commands.md").read_text()
    (example,) = re.findall(r"<!-- example -->\n\n((?:    .*\n|\n)+)", page)
    file = tmp_path / "example.py"
    file.write_text(re.sub(r"^    ", "", example, flags=re.M))
    done = subprocess.run([sys.executable, file], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 verified" in done.stdout


KERNEL = "__global__ void k(float *a) { a[threadIdx.x] = 1; }"


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: ts.emit("sgemm/naive", arch=80), "arch is '80'; it takes a text"),
        (lambda: ts.bench("sgemm/naive", sizes=64), "sizes is '64'; it takes a list"),
        (lambda: ts.rung(None), "rung takes a name"),
        (lambda: ts.check(KERNEL, block=32, sizes=5), "sizes is '5'; it takes a dictionary"),
        (lambda: ts.check(KERNEL, grid="x", block=32), "grid is 'x'; it takes a whole number or a list"),
        (lambda: ts.check(KERNEL, block=32, arguments=5), "it takes a dictionary or a list"),
        (lambda: ts.tune(""), "tune takes sgemm, reduce, hgemm or a rung"),
        (lambda: ts.check(KERNEL, block=32, expect={"a": None}), "expect of a is 'None'"),
        (lambda: ts.check(KERNEL, block=32, expect={"a": [float("nan")] * 32}), "is NaN throughout"),
    ],
)
def test_values_of_another_kind_are_bad_input(call, told):
    with pytest.raises(ts.BadInput, match=re.escape(told)):
        call()


def test_arrays_of_the_other_byte_order_are_what_they_say():
    x = np.arange(32, dtype=">f4")
    kernel = "__global__ void k(const float *x, float *y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }"
    found = ts.check(kernel, block=32, arguments={"x": x, "y": "f32[32]:out"}, expect={"y": "2*x"})
    assert found.ok and found.outputs["y"][5] == 10
