"""What cannot be is one line and exit code 2, or 3 where the machine lacks something."""

import json
import os

import pytest

KERNELS = """\
template <int T> __global__ void made(float *x) { x[threadIdx.x] = T; }
__global__ void one(const float *x, float *y, int n) { if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x]; }
__global__ void deep(float **x) { x[0][0] = 1; }
__global__ void texture(cudaTextureObject_t t, float *y) { y[0] = tex1Dfetch<float>(t, 0); }
template <int A, int B> __global__ void pair(float *x) { x[0] = A + B; }
__device__ int counter;
__constant__ float W[9];
__global__ void count(const float *x, int *y, int n) { y[threadIdx.x] = x[0]; }
"""
SIGNATURE = "one(float const* x, float* y, int n)"
GIVEN = ["--kernel", "one", "--block", "32", "--arg", "x=f32[4]", "--arg", "y=f32[4]", "--arg", "n=4"]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("check") / "mine.cu"
    path.write_text(KERNELS)
    return path


def one(**changed):
    """Options of a check of `one`, with some arguments changed."""
    given = {"x": "f32[4]", "y": "f32[4]", "n": "4"} | changed
    return [
        "--kernel",
        "one",
        "--block",
        "32",
        *(w for k, v in given.items() if v for w in ("--arg", f"{k}={v}")),
    ]


CASES = {
    "no launch": ([], "say how it is launched"),
    "which": (["--block", "32"], f"4 kernels; name one by --kernel: {SIGNATURE}; deep"),
    "unknown": (["--block", "1", "--kernel", "on"], "no kernel 'on', did you mean 'one'?: it has one, deep"),
    "template": (["--block", "1", "--kernel", "made"], "name an instance with its arguments"),
    "no instance": (["--block", "1", "--kernel", "made<float>"], "'made<float>' is not an instance"),
    "no template": (["--block", "1", "--kernel", "nine<3>"], 'identifier "nine" is undefined'),
    "no name": (["--block", "1", "--kernel", "made<3>; x"], "is not the name of a kernel"),
    "too few": (one(y=""), f"nothing is given for `float* y` of {SIGNATURE}"),
    "none of three": (
        ["--kernel", "one", "--block", "32"],
        f"nothing is given for `float const* x`, `float* y` and `int n` of {SIGNATURE}: say --arg 'x=f32[N]'"
        " --arg 'y=f32[N]' --arg 'n=1'",
    ),
    "too many": ([*GIVEN, "--arg", "5"], f"{SIGNATURE} takes 3 arguments; 1 are too many"),
    "no such": ([*GIVEN, "--arg", "z=5"], f"nothing takes the argument 'z': {SIGNATURE}"),
    "format": (one(x="f16[4]"), f"`float const* x` of {SIGNATURE} points to f32; an array of f16 is given"),
    "no format": (one(x="f99[4]"), "'f99' is not a format"),
    "no array": (one(x="3"), "is a pointer; 3 is given"),
    "no number": (one(n="f32[4]"), "is a number; an array is given"),
    "not whole": (one(n="2.5"), "is a whole number; 2.5 is given"),
    "too wide": (one(n="2**40"), "has 32 bits"),
    "pointers": (["--kernel", "deep", "--block", "1", "--arg", "f32[4]"], "points to pointers"),
    "negative": (one(x="f32[-4]"), "extents are [-4]"),
    "filled": (one(x="f32[4]:green"), "'green' fills no array"),
    "large": (one(x="f32[1<<40]"), "4 GiB"),
    "npy": (one(x="missing.npy"), "missing.npy"),
    "no such in comments": (["--kernel", "nosuch"], "mine.cu has no kernel 'nosuch': it has made, one, deep"),
    "too few of a template": (["--block", "1", "--kernel", "pair<1>"], "of pair, which takes <int A, int B>"),
    "other file": (one(x="x.npz"), "a whole .npy file is taken, as numpy.save writes it, not a .npz file"),
    "part of a file": (one(x="x.npy[0]"), "not a part of one"),
    "misspelled": ([*GIVEN, "--expct", "y=x"], "did you mean '--expect'?; see `tir-schedules check --help`"),
    "twice": ([*GIVEN, "--arg", "x=f32[4]"], "--arg x= is given 2 times"),
    "no blocks": ([*GIVEN, "--grid", "-4"], "the grid has -4 blocks along x; it takes 1 or more"),
    "grid": ([*GIVEN, "--grid", "1+"], "it is not an expression"),
    "grid name": ([*GIVEN, "--grid", "M"], "there is no 'M'"),
    "grid of four": ([*GIVEN, "--grid", "1,1,1,1"], "4 extents"),
    "half a block": ([*GIVEN, "--grid", "1.5"], "not a whole number"),
    "grid too large": ([*GIVEN, "--grid", "2**40"], "CUDA allows 1 to 2147483647"),
    "work too large": ([*GIVEN, "--grid", "30000000"], "too large"),
    "power": ([*GIVEN, "--grid", "9**9**9**9"], "the power is too large"),
    "shared": ([*GIVEN, "--shared", "-4"], "0 bytes or more"),
    "import": ([*GIVEN, "--grid", "__import__('os')"], "there is no function '__import__'"),
    "attribute": ([*GIVEN, "--expect", "y=x.__class__"], ".__class__ is not taken"),
    "method": ([*GIVEN, "--expect", "y=x.summ()"], "no function 'summ', did you mean 'sum'?"),
    "call": ([*GIVEN, "--expect", "y=x[0](1)"], "functions are called by their names"),
    "comprehension": ([*GIVEN, "--expect", "y=[a for a in x]"], "ListComp is not taken"),
    "expect shape": ([*GIVEN, "--expect", "y=zeros(7)"], "has the shape (7,); y has (4,)"),
    "expect size": ([*GIVEN, "--expect", "y=repeat(x, 10**10)"], "too large"),
    "expect repeated": ([*GIVEN, "--grid", "10**10*(1,)"], "operators take numbers and arrays"),
    "expect many": ([*GIVEN, "--expect", "y=linspace(0, 1, 10**10)"], "too large"),
    "expect steps": ([*GIVEN, "--expect", "y=arange(0, 1, 1e-10)"], "too large"),
    "expect square": ([*GIVEN, "--expect", "y=eye(10**6)"], "too large"),
    "expect diagonal": ([*GIVEN, "--expect", "y=diag(tile(x, 10**5))"], "too large"),
    "expect bins": ([*GIVEN, "--expect", "y=bincount(int64(x) * 0 + 10**10)"], "too large"),
    "expect none of it": ([*GIVEN, "--expect", "y[0:0]=x"], "it is not an element of y"),
    "expect nan": ([*GIVEN, "--expect", "y=sqrt(x - 99)"], "it is NaN for these inputs"),
    "expect anything": ([*GIVEN, "--expect", "y=x / ((x + 1) - 1 - x + 1e-9)"], "or say --tolerance"),
    "expect run together": ([*GIVEN, "--expect", "y=1if n else 2"], "invalid decimal literal"),
    "wide range": (one(x="f32[4]:-1e400..1e400"), "the range is wider than"),
    "input as output": (one(x="f32[4]:out"), f"`float const* x` of {SIGNATURE} is an input, and :out says"),
    "expect depth": ([*GIVEN, "--expect", "y=" + "-" * 3000 + "x"], "nested too deeply"),
    "expect name": ([*GIVEN, "--expect", "z=x"], "there is no array 'z'; arrays: x, y"),
    "expect of nothing": ([*one(y="i32[4]:out"), "--kernel", "count", "--expect", "y=x+y"], "y is :out and"),
    "expect part of nothing": ([*one(y="f32[4]:out"), "--expect", "y=y.T"], "say :inout in place of :out"),
    "expect no number": ([*GIVEN, "--expect", "y=None"], "its values are not numbers"),
    "expect axis": ([*one(x="f32[4,3]"), "--expect", "y=max(x, 1)"], "by element: say max(x, axis=1)"),
    "expect variable": ([*GIVEN, "--expect", "counter=n"], "say --arg 'counter=i32[1]:zeros'"),
    "variable in expected": ([*GIVEN, "--expect", "y=W[0]*x"], "say --arg 'W=f32[9]'"),
    "expect form": ([*GIVEN, "--expect", "y"], "--expect takes NAME=EXPRESSION"),
    "as other": (["--kernel", "one", "--block", "1", "--as", "sgemm", "--mnk", "4,4,4"], "has 2 pointers"),
    "as what": (["--kernel", "one", "--block", "1", "--as", "reduce"], "--as reduce needs --n N"),
    "layout of a sum": (["--block", "1", "--as", "reduce", "--n", "4", "--layout", "nt"], "a sum has no B"),
    "sums of sgemm": (
        ["--block", "1", "--as", "sgemm", "--mnk", "4,4,4", "--accumulate", "float32"],
        "--accumulate is for --as hgemm",
    ),
    "launch": (["--launch", "one(1,2)"], "it takes a kernel, its grid and its block"),
    "launch few": (["--launch", "one[1,32](1)"], f"--launch gives 1 arguments; {SIGNATURE} takes 3"),
    "launch name": (["--launch", "one[1,32](q,q,4)"], "there is no argument 'q'"),
    "macro": ([*GIVEN, "-D", "3=4"], "-D takes NAME or NAME=VALUE"),
    "folder": ([*GIVEN, "-I", "/nowhere/at/all"], "is not a folder"),
    "tolerance": ([*GIVEN, "--tolerance", "nan"], "--tolerance is nan"),
    "let": ([*GIVEN, "--let", "5"], "--let takes NAME=NUMBER"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_line(case, file, tool):
    options, told = CASES[case]
    code, out, err = tool("check", str(file), *options)
    assert code == 2 and not out and told in err, err
    assert err.count("\n") == 1 and len(err) < 400


def test_what_the_machine_lacks_is_named(file, tool):
    code, out, err = tool(
        "check", str(file), "--kernel", "texture", "--block", "1", "--arg", "t=0", "--arg", "y=[1]"
    )
    assert code == 3 and not out and "mine.cu:4" in err and "does not know tex.1d" in err


FILES = {
    "missing": (None, "No such file"),
    "binary": (bytes(range(256)), "it is not text"),
    "zeros": (b"int x;\0\0", "binary file"),
    "empty": (b"", "no __global__ function"),
    "large": (b"/" * ((16 << 20) + 1), "more than 16 MiB"),
    "comment": (b"// check: --grids 4\n__global__ void k() {}\n", "unrecognized arguments: --grids 4"),
    "within": (b"\n// check: --grid 4 --block M\n__global__ void k() {}\n", "mine.cu:2: --block 'M'"),
    "at it": (b"// check: --block 4 --arg 5\n__global__ void k() {}\n", "mine.cu:1: k() takes 0 arguments"),
    "quote": (b"// check: --grid '4\n__global__ void k() {}\n", "No closing quotation"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_is_none_is_one_line(case, tmp_path, tool):
    content, told = FILES[case]
    path = tmp_path / "mine.cu"
    if content is not None:
        path.write_bytes(content)
    code, out, err = tool("check", str(path), *(() if b"--block" in (content or b"") else ("--block", "1")))
    assert code == 2 and told in err and not out and err.count("\n") == 1


def test_a_header_that_is_missing_is_named(tmp_path, tool):
    path = tmp_path / "mine.cu"
    path.write_text("#include <nowhere/at_all.h>\n__global__ void k() { at_all(); }\n")
    code, _, err = tool("check", str(path), "--block", "1")
    assert code == 3 and "includes nowhere/at_all.h" in err and err.count("\n") == 1
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "nowhere").mkdir()
    (tmp_path / "sub" / "nowhere" / "at_all.h").write_text("__device__ inline void at_all() {}\n")
    code, _, err = tool("check", str(path), "--block", "1")
    assert code == 3 and f"say -I {os.path.relpath(tmp_path / 'sub')}" in err
    path.write_text("#include <nowhere/else.h>\n__global__ void k() {}\n")
    code, out, _ = tool("check", str(path), "--block", "1")
    assert code == 0 and "note: nowhere/else.h is not found: host code that needs it is left out" in out
    code, out, _ = tool("check", str(path), "--block", "1", "--json")
    assert "nowhere/else.h" in json.loads(out)[0]["compiled"][0]


@pytest.mark.parametrize("flag, said", [
    ("-arch=sm_90", "say --arch"), ("-o x.o", "check decides"), ("fast", "takes flags such as"),
    ("'-O3", "No closing quotation"), ("--no-such-flag", "Unknown option"),
])  # fmt: skip
def test_flags_that_nvcc_is_not_given(flag, said, file, tool):
    code, out, err = tool("check", str(file), *GIVEN, "--nvcc", flag)
    assert code in (1, 2) and said in out + err, (out, err)
