"""Parameter lists as people write them: each is read as C++ means it, or refused with one line that says what
would be right."""

import pytest

from tir_schedules.compiler.signature import argument_names, check_ptx, find_signature, functions
from tir_schedules.errors import CheckFailed
from tir_schedules.model.launch import TensorMap
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

GEMM = Gemm(2, 2, 2)
HEAD = 'extern "C" __global__ void __launch_bounds__(256) k'


def names(parameters, workload=GEMM, head=HEAD):
    signature = find_signature(f"{head}({parameters}) {{ }}\n", "k")
    return "".join(argument_names(signature, "k", workload.parameters, workload.outputs))


@pytest.mark.parametrize(
    "parameters, expected",
    [
        ("const float *__restrict__ A, const float* B, float *C, int M, int N, int K", "ABCMNK"),
        ("float* __restrict__ C_ptr, float* __restrict__ A_ptr, float* __restrict__ B_ptr", "CAB"),
        ("const float* const A, float C[], const int K", "ACK"),
        ("float A[64], float C[][8], float (*B)[64]", "ACB"),
        ("const float *a, const float *b, float *c, int m, int n, int k", "ABCMNK"),
        ("float *C, int N = 4, int M = (1, 2), int K = K_OF<3, 4>()", "CNMK"),
        ("float *C /* , int Q */, // int R,\n  int\n  N", "CN"),
        ("[[maybe_unused]] int M, Vec<float, 3> *A, float *C, __grid_constant__ const int N", "MACN"),
        ("const float4 *__restrict A, float *C, unsigned N, uint32_t K, unsigned int M", "ACNKM"),
        ("T *C, index_t N", "CN"),
    ],
)
def test_parameters_by_name(parameters, expected):
    assert names(parameters) == expected


@pytest.mark.parametrize(
    "parameters, reason",
    [
        ("", "k has no parameters, so it cannot leave a result"),
        ("void", "k has no parameters"),
        ("const float *A", "k has no parameter float* C"),
        ("float X[]", "`float X[]`, which is not one"),
        ("float *C, float *out", "`float *out`, which is not one"),
        ("float *C, int M, int N, int K, int L", "`int L`, which is not one"),
        ("float *C, float *c", "`float *c`, which is not one"),
        ("float *C, float *C", "two parameters for C"),
        ("float *C, int", "parameter 2 of k, `int`, has no name"),
        ("float *C, size_t", "`size_t`, has no name"),
        ("float *, float *C", "parameter 1 of k, `float *`, has no name"),
        ("float *C, ...", "`...`, has no name"),
        ("double *A, float *C", "`double *A`; it should be const float* A"),
        ("int A, float *C", "`int A`; it should be const float* A"),
        ("float **A, float *C", "`float **A`; it should be const float* A"),
        ("int *A, float *C", "`int *A`; it should be"),
        ("float *C, const int &N", "`const int &N`; it should be int N"),
        ("float *C, long long N", "`long long N`; it should be int N"),
        ("float *C, std::size_t N", "it should be int N"),
        ("float *C, float N", "`float N`; it should be int N"),
        ("float *C, int *N", "`int *N`; it should be int N"),
    ],
)
def test_what_no_launch_can_give_is_refused_in_one_line(parameters, reason):
    with pytest.raises(CheckFailed) as caught:
        names(parameters)
    assert reason in str(caught.value) and "\n" not in str(caught.value)
    assert "should be" in str(
        caught.value
    ) or "const float* A, const float* B, float* C, int M, int N, int K" in str(caught.value)


def test_types_are_those_of_the_workload():
    half = HalfGemm(8, 8, 8)
    assert names("const half *A, const __half *B, half *C", half) == "ABC"
    assert names("const uint32_t *A, const half2 *B, half *C", half) == "ABC", "halves read by their bits"
    for wrong in ("const float *A, half *C", "half *A, float *C"):
        with pytest.raises(CheckFailed, match="it should be"):
            names(wrong, half)
    assert names("float *C", HalfGemm(8, 8, 8, accumulate="float32")) == "C"
    bfloat = HalfGemm(8, 8, 8, "nt", "float32", "bfloat16", "bfloat16")
    assert names("nv_bfloat16 *A, const __nv_bfloat16 *B, ushort *C", bfloat) == "ABC"
    for wrong in ("half *A, nv_bfloat16 *C", "nv_bfloat16 *A, float *C"):
        with pytest.raises(CheckFailed, match="it should be"):
            names(wrong, bfloat)
    assert (
        names("int *x, int *y, int n", Reduction(9)) == "XYN"
        and names("float *X, float *Y", Reduction(9, "float32")) == "XY"
    )
    with pytest.raises(CheckFailed, match="it should be const int\\* X"):
        names("float *X, int *Y", Reduction(9))


def test_the_definition_counts_not_a_declaration_a_comment_or_a_call():
    source = (
        f'// {HEAD}(int q) {{ }}\nconst char *s = "{HEAD[-6:]}(int q) {{";\n{HEAD}(float *, int);\n'
        f"{HEAD.replace('void', 'auto')}(float *C, int N)\n-> void {{ }}\nvoid host() {{ k(1); k<<<1,"
        " 1>>>(nullptr, 2); }\n"
    )
    assert argument_names(find_signature(source, "k"), "k", GEMM.parameters, ("C",)) == ("C", "N")


def test_macros_are_expanded_where_they_matter():
    expanded = f"{HEAD}(float *C, int M) {{ }}"
    for source in (
        f"#define ARGS float *C, int M\n{HEAD}(ARGS) {{ }}",
        "#define NAME k\n__global__ void NAME(float *C, int M) {{ }}",
        f"#if 0\n{HEAD}(float *C, int X) {{ }}\n#else\n{expanded}\n#endif",
        f"{HEAD}(float *C,\n#ifdef X\nint X,\n#endif\nint M) {{ }}",
    ):
        assert argument_names(
            find_signature(source, "k", lambda: expanded), "k", GEMM.parameters, ("C",)
        ) == ("C", "M")

    def never():
        raise AssertionError

    find_signature(f"#define T float\n{HEAD}(T *C) {{ }}", "k", never)


def test_a_source_without_the_kernel_names_those_it_has():
    source = (
        '__global__ void __launch_bounds__(TS * (TS)) other(float *C) { }\nextern "C" __global__'
        " void\nthird(int) { }\n"
    )
    assert functions(source) == ["other", "third"]
    for text, reason in (
        (source, "it has other, third"),
        ("int nothing;", "it has no __global__ function"),
        (f"{HEAD}(int N", "bracket"),
    ):
        with pytest.raises(CheckFailed, match="no kernel found") as caught:
            find_signature(text, "k")
        assert reason in str(caught.value)


@pytest.mark.parametrize(
    "declared, reason",
    [
        (".param .u64 k_param_0,\n.param .u32 k_param_1", None),
        (".param .u64 .ptr .align 1 k_param_0,\n.param .u32 k_param_1", None),
        (
            ".param .u64 k_param_0,\n.param .u64 k_param_1",
            "parameter 2 of k, for N, is 64 bits of type u64; it should be int N",
        ),
        (".param .u64 k_param_0,\n.param .f32 k_param_1", "for N, is 32 bits of type f32"),
        (".param .u32 k_param_0,\n.param .u32 k_param_1", "for C, is 32 bits"),
        (".param .u64 k_param_0,\n.param .align 4 .b8 k_param_1[16]", "for N, is a struct"),
        (".param .u64 k_param_0", "k has 1 parameters"),
    ],
)
def test_what_nvcc_made_of_types_is_checked(declared, reason):
    ptx = f".visible .entry k(\n{declared}\n)\n{{\n}}\n"
    if reason is None:
        return check_ptx(ptx, "k", ("C", "N"), GEMM.parameters)
    with pytest.raises(CheckFailed) as caught:
        check_ptx(ptx, "k", ("C", "N"), GEMM.parameters)
    assert reason in str(caught.value)


MAPS = tuple(
    TensorMap(f"{name}_map", name, "float16", (64, 64), (128,), (64, 64), 128) for name in ("A", "C")
)
TAKES = {"A": "const half*", "C": "half*", "M": "int"}


def names_of(parameters, maps=MAPS):
    source = f'extern "C" __global__ void k({parameters}) {{}}'
    return argument_names(find_signature(source, "k"), "k", TAKES, ("C",), maps)


def test_tensor_maps_are_parameters_and_an_output_may_be_known_by_one_alone():
    declared = "const __grid_constant__ CUtensorMap"
    assert names_of(f"{declared} A_map, int M, {declared} C_map") == ("A_map", "M", "C_map")


@pytest.mark.parametrize("parameters, line", [
    ("const CUtensorMap A_map, half* C", "should be const __grid_constant__ CUtensorMap A_map"),
    ("const __grid_constant__ CUtensorMap* A_map, half* C", "be const __grid_constant__ CUtensorMap A_map"),
    ("const half* A_map, half* C", "should be const __grid_constant__ CUtensorMap A_map"),
    ("const __grid_constant__ CUtensorMap A, half* C", "it should be const half* A"),
    ("const __grid_constant__ CUtensorMap B_map, half* C", "which is not one of these: .* C_map"),
    ("const __grid_constant__ CUtensorMap A_map, int M", "no parameter half* C"),
])  # fmt: skip
def test_a_tensor_map_that_is_declared_otherwise_is_one_line(parameters, line):
    with pytest.raises(CheckFailed, match=line.replace("*", r"\*").replace(r".\*", ".*")):
        names_of(parameters)


@pytest.mark.parametrize("kind, line", [
    (".align 128 .b8 k_param_0[128]", ""), (".align 64 .b8 k_param_0[64]", "is a struct"),
    (".u64 k_param_0", "64 bits"),
])  # fmt: skip
def test_a_tensor_map_is_128_bytes_of_ptx(kind, line):
    ptx = f".visible .entry k(\n\t.param {kind},\n\t.param .u32 k_param_1\n)\n{{ ret; }}"
    if not line:
        return check_ptx(ptx, "k", ("A_map", "M"), TAKES, MAPS)
    with pytest.raises(CheckFailed, match=f"parameter 1 of k, for A_map, .*{line}"):
        check_ptx(ptx, "k", ("A_map", "M"), TAKES, MAPS)
