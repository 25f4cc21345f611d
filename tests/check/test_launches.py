"""Launches read from a file's own host code: what styles of host code come to, and what is said where they
cannot be told. Most are read alone, with nothing compiled."""

import json
from pathlib import Path

import pytest

from tir_schedules.check.arguments import parse_argument
from tir_schedules.check.launches import Known, read_launch
from tir_schedules.errors import BadInput
from tir_schedules.source import Source

K = "__global__ void k(const float *x, float *y, int n, float a) { if (threadIdx.x < n) y[0] = a * x[0]; }\n"
T = "template <typename T, int B> __global__ void t(const T *x, T *y, int n) { y[0] = x[0]; }\n"


def read(
    text,
    kernel="",
    args=(),
    defines=(),
    extents=(None, None, None),
    folder="",
    includes=(),
    shape=(),
    **sizes,
):
    known = Known([parse_argument(one) for one in args], sizes, extents, dict(shape))
    return read_launch(Source(text, "k.cu", str(folder)), includes, defines, kernel, known)


def main(body, head=""):
    return f"{K}{head}int main(int argc, char **argv) {{ float *x, *y; {body} }}\n"


SHAPES = {
    "numbers": (main("k<<<4, 256>>>(x, y, 7, 1);"), 4, 256, 0),
    "constants": (
        main("const int n = 1000; int t = 128; k<<<(n + t - 1) / t, t, t * sizeof(float)>>>(x, y, n, 1);"),
        8,
        128,
        512,
    ),
    "dim3": (main("dim3 g(4, 3), b = dim3(16, 2); k<<<g, b, 0, 0>>>(x, y, 1, 1);"), (4, 3), (16, 2), 0),
    "braces": (main("dim3 g{4, 3}; k<<<g, {8, 4, 2}>>>(x, y, 1, 1);"), (4, 3), (8, 4, 2), 0),
    "members": (main("dim3 g; g.x = 5; g.y = g.x * 2; k<<<g, dim3(g.x)>>>(x, y, 1, 1);"), (5, 10), 5, 0),
    "macro": (
        main(
            "k<<<CEIL_DIV(100, BLOCK), BLOCK>>>(x, y, 1, 1);",
            "#define BLOCK (1 << 5)\n#define CEIL_DIV(M, N) \\\n  (((M) + (N)-1) / (N))\n",
        ),
        4,
        32,
        0,
    ),
    "helper": (
        main(
            "k<<<up(100, 32), std::min(64, 32)>>>(x, y, 1, 1);",
            "template <class T> constexpr T up(T a, T b) { return a % b ? a / b + 1 : a / b; }\n",
        ),
        4,
        32,
        0,
    ),
    "unseen helper": (main("k<<<ceil_div(100, 32), 32>>>(x, y, 1, 1);"), 4, 32, 0),
    "lambda": (
        main("auto up = [](int a, int b) { return (a + b - 1) / b; }; k<<<up(9, 4), 4>>>(x, y, 1, 1);"),
        3,
        4,
        0,
    ),
    "casts": (main("k<<<static_cast<unsigned int>(ceil(100 / 32.0f)), (int)32.5>>>(x, y, 1, 1);"), 4, 32, 0),
    "ceil": (main("int n = 100; int g = ceilf(float(n) / 64); k<<<g, 64>>>(x, y, n, 1);"), 2, 64, 0),
    "whole division": (main("k<<<-7 / -2, 7 % 4>>>(x, y, 1, 1);"), 3, 3, 0),
    "octal": (main("k<<<0x10, 010>>>(x, y, 1, 1);"), 16, 8, 0),
    "ternary": (main("int n = 50; int t = n > 64 ? 128 : 32; k<<<1'0, t>>>(x, y, n, 1);"), 10, 32, 0),
    "several": (main("size_t n = 1 << 10, t = 64; k<<<n / t, t>>>(x, y, n, 1);"), 16, 64, 0),
    "argv": (main("int n = 64; if (argc > 1) n = atoi(argv[1]); k<<<n / 32, 32>>>(x, y, n, 1);"), 2, 32, 0),
    "loop": (
        main("int s[] = {32, 64}; for (int j = 0; j < 2; ++j) { int t = s[j]; k<<<1, t>>>(x, y, 1, 1); }"),
        1,
        32,
        0,
    ),
    "range": (main("for (int t : {64, 128}) k<<<1, t>>>(x, y, 1, 1);"), 1, 64, 0),
    "while": (main("int t = 1; while (t < 100) t <<= 1; k<<<1, t>>>(x, y, 1, 1);"), 1, 128, 0),
    "function": (
        K + "void run(float *x, int n, int t = 32) { k<<<(n + t - 1) / t, t>>>(x, x, n, 1); "
        "}\n"
        "int main() { float *x; run(x, 100); }",
        4,
        32,
        0,
    ),
    "template": (
        K + "template <int B> void run(int n) { k<<<n / B, B>>>(0, 0, n, 1); }\nvoid f() { run<16>(64); }",
        4,
        16,
        0,
    ),
    "class": (
        K + "struct S { static constexpr int B = 64; static void run() { k<<<2, B>>>(0, 0, 1, 1); } };",
        2,
        64,
        0,
    ),
    "member of a template": (
        K + "template <class T> struct P { static constexpr int size = 16 / sizeof(T); };\n"
        "typedef P<float> P4;\nvoid f() { k<<<P4::size, P<char>::size>>>(0, 0, 1, 1); }",
        4,
        16,
        0,
    ),
    "enum": (K + "enum { A = 3, B };\nnamespace n { void f() { k<<<A, B>>>(0, 0, 1, 1); } }", 3, 4, 0),
    "left out": (
        main(
            '// k<<<9, 9>>>()\n/* k<<<8, 8>>>() */ puts("k<<<7, 7>>>()");\n#if 0\nk<<<6, '
            "6>>>(x, y, 1, 1);\n"
            "#else\nk<<<2, 32>>>(x, y, 1, 1);\n#endif\n"
        ),
        2,
        32,
        0,
    ),
    "ifdef": (
        main(
            "\n#ifdef BIG\nk<<<9, 9>>>(x, y, 1, 1);\n#elif defined(__CUDACC__) && "
            "__cplusplus > 1\n"
            "k<<<2, 32>>>(x, y, 1, 1);\n#endif\n"
        ),
        2,
        32,
        0,
    ),
    "checked": (
        main("CHECK(cudaMalloc(&x, 4));\nCHECK_SHAPE(x)\nint t = 32;\nCHECK((k<<<1, t>>>(x, y, 1, 1)));"),
        1,
        32,
        0,
    ),
    "macro that launches": (
        main(
            "LAUNCH(k, 64)", "#define LAUNCH(name, t) \\\n name##<<<2, t>>>(x, y, 1, 1)\n".replace("##", "")
        ),
        2,
        64,
        0,
    ),
    "macro that defines": (
        K + "#define BIND(f, n) \\\n void run_##f() { \\\n f<<<n, 8>>>(0, 0, 1, 1); }\nBIND(k, 5)\n",
        5,
        8,
        0,
    ),
    "dispatched": (
        K + 'void f() { AT_DISPATCH("k", ([&] { const int t = 64; k<<<2, t>>>(0, 0, 1, 1); })); }',
        2,
        64,
        0,
    ),
    "switch": (
        K + "void f(int t) { switch (t) { case 64: k<<<1, t>>>(0, 0, 1, 1); break; default: abort(); } }",
        1,
        64,
        0,
    ),
    "branch": (K + "void f(int t) { dim3 b(t); if (t == 16) { k<<<1, b>>>(0, 0, 1, 1); } }", 1, 16, 0),
    "the branch that holds": (
        main(
            "int v = 2; if (v == 1) { if (v < 3) k<<<9, 9>>>(x, y, 1, 1); } "
            "else { k<<<2, 32>>>(x, y, 1, 1); }"
        ),
        2,
        32,
        0,
    ),
    "reference": (
        K + "void f(const dim3 &d) { k<<<d.x / 2, d.y>>>(0, 0, 1, 1); }\nint main() { dim3 d(8, 4); f(d); }",
        4,
        4,
        0,
    ),
    "by reference": (
        main(
            "int g = 0, b; sizes(100, g, b); k<<<g, b>>>(x, y, 1, 1);",
            "void sizes(int n, int &g, int &b) { b = n < 64 ? n : 32; g = (n + b - 1) / b; }\n",
        ),
        4,
        32,
        0,
    ),
    "a macro's value by then": (
        K + "#define G 1\n#define B 32\nvoid f() { k<<<G, B>>>(0, 0, 1, 1); }\n"
        "#undef B\n#define B 64\n#define G 2\n",
        1,
        32,
        0,
    ),
    "runtime": (
        main(
            "int n = 5; float a = 2; void *args[] = {&x, &y, (void *)&n, &a};"
            "cudaLaunchKernel((const void *)k, dim3(4), dim3(32), args, 64, 0);"
        ),
        4,
        32,
        64,
    ),
    "cooperative": (
        main("void **args; CHECK(cudaLaunchCooperativeKernel((void *)k, 4, 32, args));"),
        4,
        32,
        0,
    ),
    "extended": (
        main(
            "cudaLaunchConfig_t c = {0}; c.gridDim = 4; c.blockDim = dim3(8, 2); "
            "c.dynamicSmemBytes = 16;"
            "cudaLaunchKernelEx(&c, k, x, y, 1, 1.f);"
        ),
        4,
        (8, 2),
        16,
    ),
    "by a variable": (main("auto f = &k; f<<<1, 32>>>(x, y, 1, 1);"), 1, 32, 0),
    "vector": (main("std::vector<float> h(100, 1.f); k<<<h.size(), 32>>>(x, y, 1, 1);"), 100, 32, 0),
}


def three(extents):
    return (*((extents,) if isinstance(extents, int) else extents), 1, 1)[:3]


@pytest.mark.parametrize("case", SHAPES)
def test_a_launch_is_read(case):
    text, grid, block, shared = SHAPES[case]
    found = read(text)
    assert (found.grid, found.block, found.shared) == (three(grid), three(block), shared)
    assert found.kernel.removeprefix("n::") == "k" and found.read.startswith("launch read from k.cu:")


RUN = "void run(float *p, float *q, int N) { t<float, 64><<<(N + 63) / 64, 64>>>(p, q, N); }"
TORCH = """
torch::Tensor run(torch::Tensor in) {
  auto out = torch::empty_like(in);
  const int rows = in.size(0), cols = in.size(1);
  const auto n = in.numel();
  AT_DISPATCH_ALL_TYPES(in.scalar_type(), "t", ([&] {
    t<scalar_t, 8><<<dim3(rows, cols / 8), n>>>(in.data_ptr<scalar_t>(), (scalar_t *)out.data_ptr(), rows);
  }));
}
"""


def test_what_the_user_says_wins_over_the_source():
    text = main("int n = 1000; k<<<n / 10, 32>>>(x, y, n, 1);")
    assert read(text, n=50).grid == (5, 1, 1)
    assert read(text, args=["n=60"]).grid == (6, 1, 1)
    assert read(text, extents=("7,2", None, "16")).grid == (7, 2, 1)
    assert read(text, extents=("7,2", None, "16")).shared == 16
    helper = main("k<<<halved(12), 32>>>(x, y, 1, 1);", "int halved(int n) { return n / 2; }\n")
    assert read(helper, n=50).grid == (6, 1, 1)  # the n of another function


def test_numbers_of_the_users_go_by_the_kernels_names():
    assert read(T + RUN, n=100).grid == (2, 1, 1)
    assert read(T + RUN, args=["f32[9]", "f32[9]", "200"]).grid == (4, 1, 1)


def test_tensors_have_the_extents_of_the_arrays_that_are_given():
    found = read(T + TORCH, args=["x=f16[4,32]", "y=f16[4,32]"])
    assert (found.grid, found.block, found.kernel) == ((4, 4, 1), (128, 1, 1), "t<__half, 8>")
    assert found.values == ("in", "out", "4")


def test_arrays_go_by_what_the_launch_passes():
    body = "void f(torch::Tensor y, torch::Tensor x) { auto c = y.contiguous(); "
    body += "k<<<y.size(0), x.size(0)>>>(%s, 1, 1); }"
    args = ["x=f32[4]", "y=f32[8]"]
    crossed = read(K + body % "c.data_ptr<float>(), x.data_ptr<float>()", args=args)
    assert (crossed.grid, crossed.block) == ((4, 1, 1), (8, 1, 1)) and crossed.values[:2] == ("c", "x")
    moved = read(K + body % "x.data_ptr<float>() + 4, y.data_ptr<float>()", args=args)
    assert moved.values[0] == ""  # not all of x


def test_extents_are_multiplied_in_a_loop():
    body = (
        "void f(torch::Tensor x, int dim) { auto sizes = x.sizes(); int64_t n = 1, m = 1;"
        " for (int i = 0; i < dim; i++) n *= sizes[i];"
        " for (int i = dim + 1; i < sizes.size(); ++i) { m *= x.size(i); }"
        " k<<<n, m>>>(x.data_ptr<float>(), 0, sizes[dim], 1); }"
    )
    for dim, grid, block in ((1, 3, 7), (2, 15, 1)):
        found = read(K + body, args=["x=f32[3,5,7]"], dim=dim)
        assert (found.grid[0], found.block[0]) == (grid, block)
    stored = body.replace("n *= sizes[i]", "{ n *= 2; sizes[i] = 1; }")
    with pytest.raises(BadInput, match="needs n"):
        read(K + stored, args=["x=f32[3,5,7]"], dim=1)


@pytest.mark.parametrize("given, blocks", [("y=f32[8]", 8), ("y=null", 1)])
def test_an_array_that_may_be_left_out(given, blocks):
    body = (
        "void f(torch::Tensor x, c10::optional<torch::Tensor> b) {"
        " const float *p = b.has_value() ? b.value().data_ptr<float>() : nullptr; bool is = b.numel() > 0;"
        " k<<<b.defined() ? b.size(0) : 1, 32>>>(x.data_ptr<float>(), p, is, 1); }"
    )
    found = read(K + body, args=["x=f32[4]", given])
    assert found.grid[0] == blocks and found.values[2] == str(int(blocks == 8))


def test_kernels_of_one_name():
    one = "namespace {} {{ __global__ void k(float *p) {{}} void f() {{ k<<<1, {}>>>(0); }} }}\n"
    both = one.format("a", 32) + one.format("b", 64)
    assert [read(both, name).block[0] for name in ("a::k", "b::k")] == [32, 64]
    assert read(both, "b::k").kernel == "b::k"
    with pytest.raises(BadInput, match="k.cu launches a::k, b::k: name one by --kernel"):
        read(both, "k")


def test_functions_as_arguments_of_templates():
    text = (
        "__device__ float add(float a) { return a; }\n__device__ float mul(float a) { return a; }\n"
        "template <float (*F)(float)> __global__ void u(float *p) { p[0] = F(p[0]); }\n"
        "void f() { u<add><<<1, 32>>>(0); u<mul><<<1, 64>>>(0); }"
    )
    found = read(text, "u<mul>")
    assert (found.kernel, found.block[0]) == ("u<mul>", 64) and read(text).kernel == "u<add>"


def test_accessors_tell_the_type_of_a_template():
    text = (
        "template <class T> __global__ void u(const torch::PackedTensorAccessor32<T, 2, R> x, double *y) {}\n"
        "void f(torch::Tensor x) { DISPATCH(u<T><<<1, 32>>>(x.packed_accessor32<T, 2, R>(), y)); }"
    )
    for args in (["x=f64[4,4]", "y=f64[4]:out"], ["f64[4,4]", "f64[4]:out"]):
        assert read(text, "u", args).kernel == "u<double>"


def test_launches_in_raw_strings_are_none():
    assert (
        read(
            'const char *s = R"x(\n a("; k<<<9, 9>>>(0); \n)x";\n' + main("k<<<1, 32>>>(x, y, 7, 1);")
        ).block[0]
        == 32
    )


LOOPS = {
    "for (int s = 64; s; s >>= 1) { k<<<1, s>>>(x, y, s, 1); }": True,
    "int s = 64; while (s) { k<<<1, s>>>(x, y, s, 1); s /= 2; }": True,
    "do k<<<1, 64>>>(x, y, 1, 1); while (f());": True,
    "do { k<<<1, 64>>>(x, y, 1, 1); } while (0);": False,
    "for (int s = 0; s < 4; s++) n += s; k<<<1, 64>>>(x, y, 1, 1);": False,
}


@pytest.mark.parametrize("body", LOOPS)
def test_a_launch_in_a_loop_is_told(body):
    found = read(main(body))
    assert found.block[0] == 64 and ("only its first turn is run" in found.read) == LOOPS[body]


def test_instances_of_templates():
    body = (
        "template <int B> void go(int n) { t<double, B * 2><<<n / B, B>>>(0, 0, n); "
        "}\nvoid f() { go<8>(64); }"
    )
    assert read(T + body).kernel == "t<double, 16>"
    named = read(
        T + "template <class A> void go(int b) { switch (b) { case 8: t<A, 8><<<b, 8 * "
        "sizeof(A)>>>(0, 0, 1);"
        " break; case 16: t<A, 16><<<b, 16 * sizeof(A)>>>(0, 0, 1); } }",
        "t<double,16>",
    )
    assert (named.kernel, named.grid, named.block) == ("t<double,16>", (16, 1, 1), (128, 1, 1))
    inner = "namespace a { namespace b { template <class T> __global__ void u(T *p) {} } }\n"
    assert (
        read(inner + "void f(int *p) { a::b::u<<<1, 2>>>(p); }", args=["p=i32[4]"]).kernel == "a::b::u<int>"
    )
    assert read(inner + "void f() { a::b::u<int><<<1, 2>>>(0); a::b::u<char><<<1, 3>>>(0); }").read.endswith(
        "; the first of 2 that differ"
    )


GEMM = """template <class T> __global__ void g(int rows, int cols, int depth, T alpha, const T *a, T *c) {}
void f(float *a, float *c, int argc) {
  int n = 1024; const int m = n, k = 512;
  dim3 grid(n / 32, m / 32);
  g<float><<<grid, 256>>>(PASSED, 1.0f, a, c);
}
"""


def test_a_ladders_shape_sets_what_the_launch_passes_for_extents():
    shape = {"M": 64, "N": 128, "K": 32}
    assert read(GEMM.replace("PASSED", "m, n, k"), shape=shape).grid == (4, 2, 1)
    swapped = GEMM.replace("int rows, int cols", "int n, int m").replace("PASSED", "n, m, k")
    assert read(swapped, shape=shape).grid == (4, 2, 1)
    for passed, told in (
        ("n, n, k", "passes n for several of M = 64, N"),
        ("m, 1024, k", "cols = 1024, and N is 128"),
    ):
        with pytest.raises(BadInput, match=f"the launch at k.cu:5 .*{told}.*: say --grid and --block"):
            read(GEMM.replace("PASSED", passed), shape=shape)
    square = dict.fromkeys("MNK", 96)
    assert read(GEMM.replace("PASSED", "n, n, n"), shape=square).grid[0] == 3
    assert read(GEMM.replace("PASSED", "m, 1024, k"), shape=shape, extents=("1", "2", None)).block == (
        2,
        1,
        1,
    )


def test_sizes_of_the_users_win_over_macros_of_host_code():
    text = "#define N 32 * 1024\n" + main("k<<<N / 64, 64>>>(x, y, N, 1);")
    assert read(text).grid == (512, 1, 1)
    assert read(text, N=640).grid == (10, 1, 1) and read(text, shape={"N": 640}, N=640).grid == (10, 1, 1)
    used = text.replace("a * x[0]", "a * x[N - 1]")
    with pytest.raises(BadInput, match="N is 32768 by a #define of k.cu, which its kernels use, and 640"):
        read(used, N=640)
    assert read(used, N=32768).grid == (512, 1, 1)
    by_another = "#define LAST (N - 1)\n" + text.replace("a * x[0]", "a * x[LAST]")
    with pytest.raises(BadInput, match="which its kernels use"):
        read(by_another, N=640)


ENUMS = """enum class Mode { add, mul = 5 };
enum Old { A, B };
namespace n { struct S { enum class In { x, y }; }; }
template <Mode M, Old O, n::S::In I, int W> __global__ void e(float *y) { y[0] = W; }
template <Mode M> void launch(float *y) { e<M, B, n::S::In::y, (int)Mode::mul><<<1, 32>>>(y); }
void f(float *y) { launch<Mode::mul>(y); }
"""


@pytest.mark.parametrize("kernel", ["", "e", "e<Mode::mul>", "e<(Mode)5, B>"])
def test_values_of_enumerations_in_templates(kernel):
    found = read(ENUMS, kernel).kernel
    assert found in ("e<Mode::mul, B, n::S::In::y, 5>", kernel) and found != "e"


def test_another_value_of_an_enumeration_is_another_instance():
    text = ENUMS.replace("e<M, B", "e<Mode::add, B")
    with pytest.raises(BadInput, match="launches e<Mode::add, B, n::S::In::y, 5>, and no line e<Mode::mul>"):
        read(text, "e<Mode::mul>")


POINTED = (
    K.replace(" k(", " add(") + K.replace(" k(", " mul(") + "__global__ void fill(float *y) { y[0] = 1; }\n"
    "auto pick(bool one) { return one ? add : mul; }\n"
    "template <class F> void run(F f, float *x, float *y) { f<<<4, 64>>>(x, y, 8, 2); }\n"
    "void g(bool one, float *x, float *y) { run(pick(one), x, y); }\n"
)


def test_a_launch_of_what_a_variable_points_to():
    for name in ("add", "mul"):
        assert read(POINTED, name).kernel == name and read(POINTED, name).grid == (4, 1, 1)
    with pytest.raises(BadInput, match="what `f` points to, which is not known: name one by --kernel: it"):
        read(POINTED)
    with pytest.raises(BadInput, match="no line of k.cu launches fill"):
        read(POINTED, "fill")
    (alone,) = [read(POINTED.replace(" mul(", " mul(int m, "))]
    assert alone.kernel == "add"


def test_headers_beside_the_file_are_read(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "sizes.h").write_text("#pragma once\n#define THREADS 64\n")
    (tmp_path / "run.cuh").write_text(
        '#include "sub/sizes.h"\n\nvoid go() { k<<<2, THREADS>>>(0, 0, 1, 1); }\n'
    )
    found = read(K + '#include "run.cuh"\n#include "gone.h"\n', folder=tmp_path)
    assert found.block == (64, 1, 1) and "launch read from run.cuh:3:" in found.read
    folders = (str(tmp_path / "sub"),)
    assert (
        read(main("k<<<1, THREADS>>>(x, y, 1, 1);", '#include "sizes.h"\n'), includes=folders).block[0] == 64
    )
    assert read(main("k<<<1, T>>>(x, y, 1, 1);"), defines=("T=16",)).block == (16, 1, 1)


UNTOLD = {
    "a file": (
        main("int n = atoi(argv[1]); k<<<n / 2, 32>>>(x, y, n, 1);"),
        "k.cu:2 (n / 2) needs n from argv, which is not known: say --let n=..., or --grid",
    ),
    "a parameter": (
        K + "void f(int rows) { int g = rows * 2; k<<<g, 32>>>(0, 0, 1, 1); }",
        "say --let rows=..., or --grid",
    ),
    "a block": (K + "void f(int t) { k<<<1, t>>>(0, 0, 1, 1); }", "say --let t=..., or --grid and --block"),
    "all of a grid": (
        K + "void f(int rows, int cols) { dim3 g(cols / 8, rows / 8); k<<<g, 32>>>(0, 0, 1, 1); }",
        "the grid of the launch at k.cu:2 (g) needs cols and rows, which are not known: say --let cols=..."
        " --let rows=..., or --grid",
    ),
    "all of a launch": (
        K + "void f(int n, int t) { k<<<n / 2, t, n>>>(0, 0, 1, 1); }",
        "the launch at k.cu:2 (n / 2) needs n and t, which are not known: say --let n=... --let t=..., or"
        " --grid and --block",
    ),
    "one of a launch": (
        K + "void f(int n) { k<<<n / 2, n, n>>>(0, 0, 1, 1); }",
        "the grid of the launch at k.cu:2 (n / 2) needs n, which is not known: say --let n=..., or --grid",
    ),
    "bytes": (K + "void f(int t) { k<<<1, 32, t>>>(0, 0, 1, 1); }", "say --let t=..., or --shared"),
    "a tensor": (
        K + "void f(torch::Tensor in) { const int M = in.size(0); k<<<M, 32>>>(0, 0, 1, 1); }",
        "needs M from in.size(), which is not known: say --let M=..., or --grid",
    ),
    "a branch": (K + "void f(bool big) { int t = 32; if (big) t = 64; k<<<1, t>>>(0, 0, 1, 1); }", "needs t"),
    "by address": (
        main("int g = 0; cudaOccupancy(&g, k); k<<<g, 32>>>(x, y, 1, 1);"),
        "say --let g=..., or --grid",
    ),
    "no launch": (K, "no line of k.cu launches a kernel"),
    "no kernel": ("int main() { thrust::sort(a, b); }", "k.cu has no __global__ function: name a file"),
    "two": (
        K + T + "void f() { k<<<1, 1>>>(0, 0, 1, 1); t<int, 1><<<1, 1>>>(0, 0, 1); }",
        "k.cu launches k, t: name one by --kernel, or several by --then",
    ),
    "a type": (
        T + "template <class A> void f() { t<A, 1><<<1, 1>>>(0, 0, 1); }",
        "has A in its template: name the instance",
    ),
    "division": (main("k<<<1 / 0, 32>>>(x, y, 1, 1);"), "a division by 0"),
    "turns": (
        main("int g = f(1);", "int f(int n) { return f(n); }\n")
        + "void h(int g) { k<<<f(g), 1>>>(0, 0, 1, 1); }",
        "say --grid",
    ),
}


@pytest.mark.parametrize("case", UNTOLD)
def test_what_cannot_be_told_is_named(case):
    text, told = UNTOLD[case]
    with pytest.raises(BadInput) as error:
        read(text)
    assert told in str(error.value) or (case == "turns" and "needs" in str(error.value)), str(error.value)
    assert "\n" not in str(error.value)


def test_another_instance_than_is_launched():
    with pytest.raises(
        BadInput, match="k.cu:2 launches t<int, 4>, and no line t<int,8>: say --grid and --block"
    ):
        read(T + "void f() { t<int, 4><<<1, 4>>>(0, 0, 1); }", "t<int,8>")


ANY = [
    "<<<",
    "k<<<1>>>(",
    "k<<<1, 2>>>",
    K + "void f() { k<<<1, (2>>>(",
    "#if (\n#endif }}}",
    "k<<<,>>>();",
    K + "void f() { if (",
    K + "void f() { for (;;",
    "#define A A\n" + main("k<<<A, 1>>>(x);"),
    "#define F(x) F(x) F(x)\n" + main("k<<<F(F(1)), 1>>>(x);"),
    main("k<<<" + "(" * 3000 + ", 1>>>(x);"),
    "template <",
    "enum {",
    "struct S {",
    'extern "C" {',
    "namespace n {",
]


@pytest.mark.parametrize("text", ANY)
def test_text_of_any_kind_is_read_to_its_end(text):
    with pytest.raises(BadInput) as error:
        read(text)
    assert "\n" not in str(error.value)


# ---- by the command ---
TWO = """\
__global__ void square(const float *x, float *t, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) t[i] = x[i] * x[i];
}
__global__ void total(const float *t, float *out, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += t[i];
  if (threadIdx.x == 0) out[0] = sum;
}
int main() {
  const int count = 100;
  float *d_x, *d_t, *d_out;
  square<<<(count + 31) / 32, 32>>>(d_x, d_t, count);
  total<<<1, 32>>>(d_t, d_out, count);
}
"""
GIVEN = [
    "--arg",
    "x=f32[100]",
    "--arg",
    "t=f32[100]:out",
    "--arg",
    "out=f32[1]:out",
    "--expect",
    "out=sum(x*x)",
]
PARTS = ["--kernel", "square", "--then", "--kernel", "total"]


@pytest.fixture
def two(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("two.cu").write_text(TWO)
    return "two.cu"


def test_a_read_launch_is_told(two, tool):
    options = ("--kernel", "square", "--arg", "f32[100]", "--arg", "f32[100]:out", "--expect", "t=x*x")
    told = "launch read from two.cu:13: grid (4,1,1), block (32,1,1), 0 bytes, n = 100"
    code, out, _ = tool("check", two, *options)
    assert code == 0 and f"note: square: {told}\n" in out and "1 of 1 verified" in out
    _, out, _ = tool("check", two, *options, "--json")
    assert json.loads(out)[0]["launches"][0]["read"] == told
    _, out, _ = tool("check", two, *options, "--dry-run")
    assert told in out and "nothing was run" in out


def test_kernels_behind_one_another(two, tool):
    code, out, _ = tool("check", two, *PARTS, *GIVEN)
    assert code == 0 and "4,1,1; 1,1,1" in out and "two.cu:14" in out
    sized = (
        "--kernel",
        "square",
        "--grid",
        "2",
        "--block",
        "32",
        "--then",
        "--kernel",
        "total",
        "--grid",
        "1",
        "--block",
        "1",
        "--let",
        "n=64",
    )
    code, out, _ = tool("check", two, *sized, *GIVEN[:-1], "out=sum(x[:64]**2)")
    assert code == 0 and "2,1,1; 1,1,1" in out and "read from" not in out
    by_host = ("--arg", "d_x=f32[100]", "--arg", "d_t=f32[100]:out", "--arg", "d_out=f32[1]:out")
    code, out, _ = tool("check", two, *PARTS, *by_host, "--expect", "d_out=sum(d_x**2)")
    assert code == 0, out


def test_kernels_behind_one_another_in_comments(two, tool):
    Path(two).write_text(f"// check: {' '.join(PARTS)}\n// check: {' '.join(GIVEN)}\n{TWO}")
    for options in ((), ("--kernel", "total"), ("--kernel", "square")):
        code, out, _ = tool("check", two, *options)
        assert code == 0 and "square, total" in out, out
    code, out, _ = tool("check", two, *PARTS[:2], "--then", "--kernel", "square", "--dry-run")
    assert "total " not in out


BAD = {
    "nothing before": (["--then", "--kernel", "total"], "--then has no launch before it"),
    "nothing behind": (["--kernel", "square", "--then"], "--then has no launch behind it"),
    "no names": ([*PARTS, "--arg", "f32[100]"], "with --then arguments go by the names of parameters"),
    "both": ([*PARTS, "--launch", "total[1,1](t,out,1)"], "leave out --kernel, --grid, --block and --then"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_parts_are_one_line(case, two, tool):
    options, told = BAD[case]
    code, out, err = tool("check", two, *options)
    assert code == 2 and not out and told in err and err.count("\n") == 1


def test_arrays_are_as_long_as_the_launch_says(tool, tmp_path):
    path = tmp_path / "long.cu"
    path.write_text(main("int count = 32; k<<<1, 32>>>(x, y, count, 3);"))
    code, out, err = tool("check", str(path), "--arg", "x=[n]", "--arg", "y=[n]", "--expect", "y[0]=a*x[0]")
    assert (code, err) == (0, "") and "1 of 1 verified" in out
    code, _, err = tool("check", str(path), "--arg", "x=[m]", "--arg", "y=[n]")
    assert code == 2 and "there is no 'm'" in err


MUCH_SHARED = """\
__global__ void k(float *x) {
  extern __shared__ float many[];
  __shared__ int one;
  many[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x == 3) one = x[3];
  __syncthreads();
  x[threadIdx.x] = many[31 - threadIdx.x] + one;
}
#define RAISE(kernel, bytes) @
int main() { float *x; RAISE(k, 49149); k<<<1, 32, 49149>>>(x); }
"""
RAISED = "cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)"


@pytest.mark.parametrize("said, code", [("", 1), ("--shared 60000", 0), (RAISED, 0)])
def test_more_shared_memory_than_a_kernel_has_without_its_attribute(said, code, tool, tmp_path):
    """With the static 4 bytes 49149 bytes are one too many."""
    path = tmp_path / "raised.cu"
    path.write_text(MUCH_SHARED.replace("@", said if said == RAISED else ""))
    given = said.split() if said.startswith("--") else []
    found, out, err = tool("check", str(path), "--arg", "x=f32[32]", *given)
    assert (found, err) == (code, "")
    assert ("49149 bytes of dynamic shared memory; CUDA refuses more than" in out) == (code == 1)


GRID_SYNC = """#include <cooperative_groups.h>
__global__ void k(float *x) {
  auto grid = cooperative_groups::this_grid();
  @
  x[grid.thread_rank()] = grid.size();
}
int main() { float *x; void *all[] = {&x}; LAUNCH; }
"""
TOGETHER, ALONE = "cudaLaunchCooperativeKernel((void *)k, dim3(4), dim3(32), all)", "k<<<4, 32>>>(x)"


@pytest.mark.parametrize(
    "sync, launch, code", [("grid.sync();", ALONE, 1), ("grid.sync();", TOGETHER, 0), ("", ALONE, 0)]
)
def test_a_grid_synchronizes_in_a_cooperative_launch_alone(sync, launch, code, tool, tmp_path):
    """Others lend no workspace, and cooperative_groups.h traps."""
    path = tmp_path / "grid.cu"
    path.write_text(GRID_SYNC.replace("@", sync).replace("LAUNCH", launch))
    found, out, err = tool("check", str(path), "--arg", "x=f32[128]:out", "--expect", "x=full(128, 128.0)")
    assert (found, err) == (code, "")
    assert ("Call cudaLaunchCooperativeKernel" in out) == (code == 1)
