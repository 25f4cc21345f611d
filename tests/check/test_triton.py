"""Triton kernels on the CPU machine: sound ones pass, broken ones are named by the line of their file."""

import inspect
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("triton")

import triton_broken
import triton_kernels

from tir_schedules import check, check_triton
from tir_schedules.check.triton.compiling import align_lines, compile_triton, own_memory
from tir_schedules.check.triton.functions import executed, kernel_of, kernels_in
from tir_schedules.errors import BadInput, MissingTool
from tir_schedules.source import EXAMPLES

FOLDER = Path(__file__).parent
DRAW = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "triton"))


def reals(*shape, dtype=np.float32):
    return DRAW.uniform(-1, 1, shape).astype(dtype)


def blocks_of(meta):
    return -(-meta["n"] // meta["BLOCK"])


def tiles_of(meta):
    return -(-meta["m"] // meta["BM"]), -(-meta["n"] // meta["BN"])


def check_add(n, kernel=triton_kernels.add, **options):
    given = reals(n), reals(n), reals(n), n
    return check_triton(kernel, blocks_of, *given, BLOCK=256, expect={"out": "x + y"}, **options)


def check_softmax(rows, columns, **options):
    x = reals(rows, columns)
    powers = np.exp(x.astype(np.float64))
    expect = {"out": powers / powers.sum(axis=1, keepdims=True)}
    out, block = np.empty_like(x), 1 << (columns - 1).bit_length()
    return check_triton(
        triton_kernels.softmax, rows, x, out, columns, columns, BLOCK=block, expect=expect, **options
    )


def check_layer_norm(rows, columns, **options):
    x, weight, bias = reals(rows, columns), reals(columns), reals(columns)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    scale = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    expect, block = {"out": centred / scale * weight + bias}, 1 << (columns - 1).bit_length()
    given = (x, weight, bias, np.empty_like(x), columns, 1e-5)
    return check_triton(triton_kernels.layer_norm, rows, *given, BLOCK=block, expect=expect, **options)


def check_matmul(m, n, k, kernel=triton_kernels.matmul, dtype=np.float16, **options):
    a, b, c = reals(m, k, dtype=dtype), reals(k, n, dtype=dtype), np.zeros((m, n), np.float32)
    expect, given = {"c": "a @ b"}, (a, b, c, m, n, k)
    return check_triton(
        kernel, tiles_of, *given, BM=64, BN=64, BK=32, expect=expect, outputs=["c"], **options
    )


def check_total(n, kernel=triton_kernels.total, dtype=np.float32, **options):
    x = (reals(n) * 100).astype(dtype)
    expect = {"out": "out + sum(x)"}
    return check_triton(kernel, blocks_of, x, np.ones(1, dtype), n, BLOCK=256, expect=expect, **options)


def fault_of(kernel):
    """File and line of the mark in a broken kernel."""
    texts, first = inspect.getsourcelines(kernel.fn)
    (at,) = (number for number, text in enumerate(texts) if "# fault" in text)
    return f"triton_broken.py:{first + at}"


@pytest.mark.parametrize("columns", [pytest.param(1000), pytest.param(37, marks=pytest.mark.slow)])
def test_masked_softmax(columns):
    checked = check_softmax(5, columns)
    assert checked.ok, checked.faults


def test_matmul_with_software_pipelining_and_its_counters():
    checked = check_matmul(128, 64, 96, num_stages=3)
    assert checked.ok, checked.faults
    assert checked.counters[0].accesses["shared_cp_async"].requests
    lines = {line.line: line for line in checked.counters[0].lines if line.file.endswith("triton_kernels.py")}
    source = (EXAMPLES / "triton_kernels.py").read_text().split("\n")
    (dot,) = (at for at, text in enumerate(source, 1) if "tl.dot(" in text)
    assert lines[dot].mix["mma"]
    assert any("global_cp_async" in line.accesses for line in lines.values())


def test_a_file_from_python():
    x, y = reals(1000), reals(1000)
    checked = check(
        EXAMPLES / "triton_kernels.py",
        "add",
        grid=4,
        arguments={"x": x, "y": y, "out": np.empty_like(x)},
        sizes={"n": 1000, "BLOCK": 256},
        expect={"out": "x + y"},
        outputs=["out"],
    )
    assert checked.ok, checked.faults
    assert np.array_equal(checked.outputs["out"], x + y)


def test_float32_is_taken_as_tf32():
    checked = check_matmul(64, 64, 64, dtype=np.float32)
    assert checked.ok, checked.faults
    checked = check_matmul(64, 128, 64, triton_broken.matmul_with_wrong_stride, dtype=np.float32)
    assert checked.verdict == "FAIL"
    a, b = reals(64, 64), reals(64, 64)
    given, expect = (a, b, np.zeros_like(a), 64, 64, 64), {"c": a.astype(np.float64) @ b}
    tiles = dict(BM=64, BN=64, BK=64)
    assert check_triton(triton_kernels.matmul, 1, *given, **tiles, expect=expect, tolerance=0.05).ok
    checked = check_triton(triton_kernels.matmul, 1, *given, **tiles, expect=expect)
    assert "sums that cancel need a tolerance=" in checked.faults[0]


def test_atomics():
    checked = check_total(1000)
    assert checked.ok, checked.faults


@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    [
        lambda: check_add(1000),
        lambda: check_add(1024, num_warps=8),
        lambda: check_add(1),
        lambda: check_layer_norm(3, 1000),
        lambda: check_layer_norm(2, 64, num_warps=1),
        lambda: check_matmul(130, 100, 72, num_stages=3),
        lambda: check_matmul(128, 128, 64, num_stages=1),
        lambda: check_matmul(65, 33, 1, num_stages=1),
        lambda: check_total(1000, dtype=np.int32, num_warps=8),
    ],
)
def test_more_that_are_sound(check):
    checked = check()
    assert checked.ok, checked.faults


def test_a_dropped_mask_is_out_of_bounds():
    checked = check_add(1000, triton_broken.add_without_mask)
    (finding,) = checked.findings
    assert finding.kind == "out_of_bounds" and finding.message.endswith("x has 1000 elements")
    assert finding.location.place.endswith(fault_of(triton_broken.add_without_mask))


def test_load_add_store_races_between_programs():
    checked = check_total(1000, triton_broken.total_without_atomic, dtype=np.int32)
    (finding,) = checked.findings
    assert finding.kind == "race" and "nothing orders the two blocks" in finding.message
    assert finding.location.place.endswith(fault_of(triton_broken.total_without_atomic))
    assert checked.verdict == "HAZARD"


def test_a_wrong_stride_is_a_wrong_value():
    checked = check_matmul(64, 128, 64, triton_broken.matmul_with_wrong_stride)
    (fault,) = checked.faults
    assert checked.verdict == "FAIL" and checked.findings == () and ": c[" in fault
    assert f"{fault_of(triton_broken.matmul_with_wrong_stride)} (PTX" in fault


@pytest.mark.parametrize("n", [32, pytest.param(1, marks=pytest.mark.slow)])
def test_an_update_in_place_by_more_threads_than_elements_is_sound(n):
    x = reals(n)
    checked = check_triton(triton_broken.doubled, 1, x, BLOCK=n, expect={"x": x * 2})
    assert checked.ok, checked.faults


def test_sums_that_lanes_store_together_each_with_its_own_rounding_are_sound():
    x, weight = reals(16, 100), reals(100)
    right = x - (x.astype(float) * weight).sum(1, keepdims=True)
    given = x, weight, np.empty_like(x), 100
    kernel, sizes = triton_kernels.less_their_sums, {"ROWS": 16, "BLOCK": 128}
    checked = check_triton(kernel, 1, *given, **sizes, num_warps=4, expect={"out": right})
    assert checked.ok, checked.faults
    checked = check_triton(kernel, 1, *given, **sizes, num_warps=4, expect={"out": right + 1})
    assert checked.verdict == "FAIL" and not checked.findings


def test_it_is_none_where_others_use_what_they_load():
    at = np.arange(128, dtype=np.int32)
    given = np.zeros(1, np.int32), np.zeros_like(at)
    checked = check_triton(triton_broken.ticket, 1, *given, BLOCK=128, expect={"y": at})
    assert {"race", "order_dependent"} <= {finding.kind for finding in checked.findings}
    assert checked.verdict == "FAIL"


def test_an_output_may_not_rely_on_what_is_in_it():
    given = reals(256), np.zeros(1, np.float32), 256
    checked = check_triton(triton_kernels.total, 1, *given, BLOCK=256, outputs=["out"])
    assert "uninitialized" in {finding.kind for finding in checked.findings}


def test_decorators_choose_and_compute_what_is_not_given():
    x, out = reals(1000), np.empty(1000, np.float32)
    checked = check_triton(triton_kernels.scale, blocks_of, x, out, 1000, 3.0, expect={"out": x * 6})
    assert checked.ok, checked.faults
    launch = compile_triton(triton_kernels.scale, blocks_of, dict(x=x, out=out, n=999, factor=3.0))
    assert launch.binary.kernel.block == (64, 1, 1) and launch.binary.kernel.grid == (8, 1, 1)
    assert launch.choice == "configuration 1 of 2"
    assert launch.given["DOUBLE"] is False


def test_wgmma_is_executed():
    assert check_matmul(64, 64, 32, arch="sm_90").ok


def test_what_is_not_known_is_named_with_the_way_out():
    checked = check_matmul(64, 64, 32, arch="sm_100")
    (fault,) = checked.faults
    assert "tcgen05" in fault and "--arch sm_80" in fault and "triton_kernels.py:" in fault


def test_what_triton_does_not_compile_is_one_line():
    x = reals(8)
    checked = check_triton(triton_kernels.add, 1, x, x, x, 8, BLOCK=100)
    (fault,) = checked.faults
    assert checked.verdict == "ERROR" and "\n" not in fault
    source = (EXAMPLES / "triton_kernels.py").read_text().split("\n")
    line = 1 + next(number for number, text in enumerate(source) if "tl.arange" in text)
    assert f"triton_kernels.py:{line}: arange's range must be a power of 2" in fault


def test_a_launch_is_what_triton_would_launch():
    """A number that is 1 is compiled in; one or two pointers of Triton's own follow."""
    x = reals(8)
    launch = compile_triton(triton_kernels.add, 4, dict(x=x, y=x, out=x, n=1, BLOCK=8, num_warps=2))
    assert list(launch.arguments)[:3] == ["x", "y", "out"] and "n" not in launch.arguments
    assert len(launch.arguments) in (4, 5) and launch.given["n"] == 1
    assert launch.binary.kernel.block == (64, 1, 1) and launch.binary.resources.registers > 0
    wide = compile_triton(triton_kernels.add, 4, dict(x=x, y=x, out=x, n=2**40, BLOCK=8))
    assert wide.arguments["n"].dtype == np.int64


def test_memory_that_triton_asks_for():
    metadata = SimpleNamespace(global_scratch_size=128, profile_scratch_size=0)
    first, second = own_memory(metadata, 2, (2, 3, 1)).values()
    assert first.size == 6 * 128 and second == 0
    assert own_memory(metadata, 0, (2, 3, 1)) == {}


def test_lines_of_inline_assembly():
    """LLVM counts on within it."""
    ptx = "\n".join(
        [
            ".loc 1 7 3",
            "add",
            "// begin inline asm",
            ".loc 1 8 3",
            "mov",
            ".loc 1 9 3",
            "ld",
            "// end inline asm",
        ]
    )
    assert align_lines(ptx).split("\n")[5] == ".loc 1 8 3"
    assert align_lines(ptx).count("\n") == ptx.count("\n") and align_lines(ptx).startswith(".loc 1 7 3")


X = np.zeros(8, np.float32)
GOOD = dict(x=X, y=X, out=X, n=8, BLOCK=8)


@pytest.mark.parametrize(
    "change, told",
    [
        ({"m": 3}, "add takes (x, y, out, n, BLOCK: constexpr), and no m"),
        ({"n": None, "BLOCK": X}, "BLOCK is a constexpr, and an array is given"),
        ({"num_warps": 3}, "num_warps is 3; it can be 1, 2, 4, 8, 16 or 32"),
        ({"num_stages": -3}, "num_stages is -3; it can be 0 to 32"),
        ({"x": np.zeros((8, 8), np.float32).T}, "x is not C-contiguous"),
        ({"n": (1, 2)}, "n is a tuple: give an array or a number"),
        ({"n": "eight"}, "n is 'eight'"),
        ({"x": np.zeros(8, np.complex64)}, "x is an array of complex64"),
        ({"arch": "sm_8"}, "'sm_8' is not an architecture"),
        ({"grid": (1, 2, 3, 4)}, "it has one to three whole numbers"),
        ({"grid": lambda meta: meta["missing"]}, "the grid fails: it is not given 'missing'"),
        ({"grid": 0}, "it takes 1 or more"),
        ({"expect": {"z": X}}, "there is no array 'z'"),
        ({"expect": {"out": X[:4]}}, "has the shape (4,); out has (8,)"),
    ],
)
def test_bad_arguments(change, told):
    given = {"grid": 1, **GOOD, **change}
    with pytest.raises(BadInput) as error:
        check_triton(triton_kernels.add, given.pop("grid"), **given)
    assert told in str(error.value) and "\n" not in str(error.value)


def test_missing_and_repeated_arguments():
    with pytest.raises(BadInput, match="n, BLOCK are not given"):
        check_triton(triton_kernels.add, 1, X, X, X)
    with pytest.raises(BadInput, match="x is given by its place and by its name"):
        check_triton(triton_kernels.add, 1, X, x=X)
    with pytest.raises(BadInput, match="takes 5 arguments"):
        check_triton(triton_kernels.add, 1, *[X] * 6)
    with pytest.raises(BadInput, match="is not a Triton kernel"):
        check_triton(print, 1)


def test_kernels_of_a_file():
    path = EXAMPLES / "triton_kernels.py"
    names = ["add", "softmax", "layer_norm", "tile", "matmul", "total", "scale", "less_their_sums"]
    assert list(kernels_in(path)) == names
    assert kernel_of(path, "scale").configs[0].num_warps == 2
    with pytest.raises(BadInput, match="no kernel 'softmaxx', did you mean 'softmax'.*add, softmax"):
        kernel_of(path, "softmaxx")
    with pytest.raises(BadInput, match="several kernels; name one: add, softmax"):
        kernel_of(path)


FILE = "import triton\nimport triton.language as tl\n\n\n"
KERNELS = FILE + (
    "@triton.jit\ndef helper(x):\n    return x + 1\n\n\n"
    "@triton.jit\ndef kernel(x):\n    tl.store(x, helper(tl.load(x)))\n"
)


def test_a_kernel_that_others_do_not_call_need_not_be_named(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(KERNELS)
    assert kernel_of(path).__name__ == "kernel"


@pytest.mark.parametrize(
    "text, error, told",
    [
        (
            "import not_there\n",
            MissingTool,
            "not_there, which is not installed: pip install not_there",
        ),
        (FILE, BadInput, "own.py defines no @triton.jit function"),
        ("def broken(:\n", BadInput, "own.py:1 is not Python"),
        (FILE + "triton.runtime.driver.active.no_such_thing()\n", BadInput, "own.py:5 raises"),
        ("raise SystemExit(1)\n", BadInput, "own.py:1 raises SystemExit"),
        (b"\xff\xfe\0", BadInput, "own.py"),
        (None, BadInput, "cannot read"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, text, error, told):
    path = tmp_path / "own.py"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(error) as raised:
        kernel_of(path)
    assert told in str(raised.value) and "\n" not in str(raised.value)


PUBLISHED = """\
from __future__ import annotations
from typing import Optional
import matplotlib.pyplot as plt
import pytest
import torch
import torch.nn.functional as F
from nowhere.to_be import found
from .beside import doubled
import triton, triton.language as tl
from triton.language.extra import libdevice

DEVICE = triton.runtime.driver.active.get_active_torch_device()
SMS = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
if not torch.cuda.is_available():
    raise SystemExit("no GPU")
assert torch.cuda.get_device_capability()[0] >= 7 and SMS > 1
x = torch.randn(64, 33, device=DEVICE, dtype=torch.float16)
rows, columns = x.shape

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor | None, y: Optional[torch.Tensor]) -> torch.Tensor:
        return launch(x)

@triton.jit
def kernel(x, out, n, T: tl.constexpr = torch.float16, BLOCK: tl.constexpr = 128):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(T).to(tl.float32)
    tl.store(out + at, libdevice.sqrt(v * v) + doubled(v), mask=at < n)

def launch(x):
    out = torch.empty_like(x)
    assert x.is_contiguous() and x.device == out.device
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel())
    return out

print("printed", launch(x), Own.apply(x))
torch.testing.assert_close(launch(x), F.relu(x))
while not x.done():
    pass

@pytest.mark.parametrize("n", [1, 2])
@torch.inference_mode()
def test_it(n): ...

@triton.testing.perf_report(triton.testing.Benchmark(
    x_names=["n"], x_vals=[1, 2], line_arg="p", line_vals=["a"], line_names=["A"], plot_name="p", args={}))
def bench(n, p):
    return triton.testing.do_bench(lambda: launch(x))

bench.run(show_plots=True, print_data=True)
FAILS
@triton.jit
def after(x):
    tl.store(x, found(tl.load(x)))
"""


BESIDE = "import triton\nimport torch\n@triton.jit\ndef doubled(x): return x * 2\n"


def test_a_published_file_runs_as_it_is(tmp_path, capsys, tool):
    path = tmp_path / "published.py"
    (tmp_path / "beside.py").write_text(BESIDE)
    before = set(sys.modules)
    path.write_text(PUBLISHED.replace("FAILS", ""))
    assert list(kernels_in(path)) == ["kernel", "after"] and not executed(path).note
    assert capsys.readouterr().out == "" and not {"torch", "pytest.mark", "nowhere"} & set(sys.modules)
    assert not any("beside" in name for name in set(sys.modules) - before)
    options = "--kernel kernel --let n=500 --grid cdiv(n,BLOCK) --arg x=f32[n] --arg out=f32[n]:out"
    expect = ("--expect", "out=abs(x.half()) + 2 * x.half()")
    code, out, err = tool("check", str(path), *options.split(), *expect)
    assert (code, err) == (0, "") and "4,1,1" in out and "1 of 1 verified" in out and "note" not in out
    code, out, _ = tool("check", str(path), "--kernel", "after", "--arg", "x=f32[1]")
    assert code == 1 and "nowhere.to_be.found, of what is not installed" in out


def test_what_raises_is_left_out(tmp_path, tool):
    path = tmp_path / "published.py"
    (tmp_path / "beside.py").write_text(BESIDE)
    path.write_text(PUBLISHED.replace("FAILS", "not_there\n1 / 0\nx = not_there"))
    line = PUBLISHED[: PUBLISHED.index("FAILS")].count("\n") + 1
    assert list(kernels_in(path)) == ["kernel", "after"]
    assert f"published.py:{line} raises NameError" in executed(path).note
    assert executed(path).note.endswith("this statement and 2 more are left out")
    options = "--kernel kernel --let n=5 --arg x=f32[n] --arg out=f32[n]:out"
    _, out, _ = tool("check", str(path), *options.split())
    assert "raises NameError" in out
    with pytest.raises(BadInput, match="no kernel 'kernl', did you mean 'kernel'.*raises NameError"):
        kernel_of(path, "kernl")


def test_packages_that_are_installed_are_told_what_is_missing(tmp_path):
    folder = tmp_path / "venv" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "optional_user.py").write_text(
        "try:\n    import not_there\nexcept ImportError:\n    not_there = None\n"
    )
    path = tmp_path / "own.py"
    own = f"import sys\nsys.path.append({str(folder)!r})\nimport optional_user\n"
    path.write_text(own + "assert optional_user.not_there is None\nimport not_there\n" + KERNELS)
    try:
        assert not executed(path).note and executed(path).missing == ("not_there",)
        assert "optional_user" in sys.modules and "not_there" not in sys.modules
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("optional_user", None)


def test_an_endless_loop_over_what_is_missing_ends(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(f"import torch\nwhile torch.is_there():\n    pass\n{KERNELS}")
    assert "a loop waits for torch.is_there()" in executed(path).note


def test_an_option_may_be_a_parameter_as_well(tmp_path, tool):
    path = tmp_path / "own.py"
    path.write_text(
        FILE + "@triton.jit\ndef k(x, num_stages: tl.constexpr, num_warps: tl.constexpr = 2):\n"
        "    tl.store(x + tl.arange(0, 4), num_stages + 10 * num_warps)\n"
    )
    given = ("--arg", "x=i32[4]:out", "--num-stages", "3")
    code, out, _ = tool("check", str(path), *given, "--expect", "x=23+zeros(4)", "--num-warps", "2")
    assert code == 0 and "64,1,1" in out
