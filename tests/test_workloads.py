"""The algorithm: sizes, inputs, truth, work."""

import numpy as np
import pytest

from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import BadInput
from tir_schedules.ladders.problems import Problem
from tir_schedules.ladders.registry import find
from tir_schedules.model.verify import checks_of
from tir_schedules.model.workload import Workload
from tir_schedules.run import launches
from tir_schedules.tir.tvm import import_tvm
from tir_schedules.workloads.drawing import EXACT, REALS
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction
from tir_schedules.workloads.rounding import MANTISSA, SPREAD


@pytest.mark.parametrize("shape", [(0, 1, 1), (1, -3, 1), (1, 1, 0)])
def test_sizes_below_one_are_refused(shape):
    with pytest.raises(BadInput, match="at least 1"):
        Gemm(*shape)


def test_matrices_beyond_32_bit_indices_are_refused():
    with pytest.raises(BadInput, match="2\\*\\*31"):
        Gemm(1 << 16, 1 << 15, 1)


@pytest.mark.parametrize("axis", range(3))
def test_extents_whose_tiles_end_beyond_32_bit_indices_are_refused(axis):
    shape = [1, 1, 1]
    shape[axis] = 2**31 - 2**16
    with pytest.raises(BadInput, match=f"{'MNK'[axis]} is 2147418112; .* below 2\\*\\*31 - 2\\*\\*16"):
        Gemm(*shape)
    shape[axis] -= 1
    Gemm(*shape)


def test_inputs_are_reproducible_and_the_output_is_poisoned():
    gemm = Gemm(3, 5, 7)
    first, again, other = gemm.arguments(), gemm.arguments(), gemm.arguments(seed=1)
    assert np.array_equal(first["A"], again["A"]) and not np.array_equal(first["A"], other["A"])
    assert np.isnan(first["C"]).all() and first["C"].shape == (3, 5)
    assert (first["M"], first["N"], first["K"]) == (3, 5, 7)


def test_truth_is_a_times_b():
    gemm = Gemm(2, 3, 4)
    arguments = gemm.arguments()
    by_hand = sum(float(arguments["A"][1, i]) * float(arguments["B"][i, 2]) for i in range(4))
    assert gemm.truth(arguments)["C"][1, 2] == pytest.approx(by_hand, rel=1e-15)


def test_work():
    gemm = Gemm(2, 3, 4)
    assert gemm.flops == 48 and gemm.bytes == 4 * (8 + 12 + 6)


@pytest.mark.parametrize(
    "kind",
    [
        ("tn", "float16"),
        ("nt", "bfloat16"),
        ("nt", "float32", "float32"),
        ("nt", "float16", "bfloat16"),
        ("nt", "float16", "float16", "float32"),
        ("nt", "float32", "float16", "bfloat16"),
        ("nt", "float32", "bfloat16", "float16"),
        ("nt", "float32", "float16", "float64"),
    ],
)
def test_kinds_of_half_gemms_that_do_not_exist_are_refused(kind):
    with pytest.raises(BadInput, match="it can be"):
        HalfGemm(1, 1, 1, *kind)


SHORT = [Gemm(40, 50, k) for k in (1, 5, 64, 2048)]
SHORT += [
    HalfGemm(40, 50, k, layout, wide)
    for k in (1, 5, 64, 2048)
    for layout in ("nt", "nn")
    for wide in ("float16", "float32")
]
KINDS = [("float16", "float16"), ("bfloat16", "bfloat16"), ("bfloat16", "float32")]
"""Formats of A and B, and of C, of float32 sums."""

NEWER = [HalfGemm(40, 50, k, "nt", "float32", *kind) for k in (1, 2, 5, 64, 2048) for kind in KINDS]
NEWER += [HalfGemm(4, 5, k, "nn", "float32", *kind) for k in (8191, 1 << 16) for kind in KINDS]
LONG = [Gemm(4, 5, 1 << 16), HalfGemm(4, 5, 1 << 14), HalfGemm(4, 5, 1 << 16, "nn", "float32")]


def partial_sums(workload, check):
    """The largest magnitude of any partial sum from the first term on, and whether all terms are integers and
    none is 0."""
    if isinstance(workload, Reduction):
        terms = check.inputs["X"].astype(np.float64)
    else:
        a, b = (check.inputs[name].astype(np.float64) for name in "AB")
        terms = a[:, None, :] * (b if getattr(workload, "transposed", False) else b.T)
    return np.abs(np.cumsum(terms, -1)).max(), bool(np.all(terms) and np.array_equal(terms, np.rint(terms)))


@pytest.mark.parametrize("workload", [*SHORT, *NEWER, *LONG, Reduction(1 << 20, "float32")], ids=str)
def test_every_partial_sum_of_exact_inputs_is_exact_and_no_term_is_0(workload):
    check = next(checks_of(workload))
    largest, whole = partial_sums(workload, check)
    bits = MANTISSA[getattr(workload, "accumulate", "float32")]
    assert (
        check.kind == EXACT and check.allowed == {workload.outputs[0]: 0.0} and whole and largest <= 2**bits
    )


@pytest.mark.parametrize("workload", NEWER, ids=str)
def test_a_c_of_exact_inputs_is_exact_in_its_format(workload):
    check = next(checks_of(workload))
    truth = check.truth["C"]
    assert np.array_equal(truth.astype(check.inputs["C"].dtype).astype(np.float64), truth) and truth.all()


@pytest.mark.parametrize("workload", [one for one in NEWER if one.rounds and one.k in (64, 2048)], ids=str)
def test_partial_sums_of_exact_inputs_are_beyond_what_c_holds(workload):
    """So sums in a smaller format than float32 are wrong, though C is exact."""
    largest, _ = partial_sums(workload, next(checks_of(workload)))
    assert largest > 4 * 2 ** MANTISSA[workload.result]


@pytest.mark.parametrize("m", [1, 3, 40])
def test_in_sums_too_long_for_float16_every_k_counts_with_one_of_the_inputs(m):
    gemm = HalfGemm(m, 4, 1 << 16)
    used = np.zeros(gemm.k, bool)
    for check in checks_of(gemm):
        used |= (check.kind == EXACT) & check.inputs["A"].any(axis=0)
        assert np.abs(check.truth["C"]).max() <= 2048 or check.kind == REALS
    assert used.all()


@pytest.mark.parametrize(
    "workload", [Gemm(30, 40, 512), *SHORT[-4:], *NEWER[12:15], Reduction(1 << 18, "float32")], ids=str
)
def test_sums_of_reals_are_far_from_0_and_no_partial_sum_is_larger_than_assumed(workload):
    *_, check = checks_of(workload)
    (name,) = workload.outputs
    allowed = np.abs(check.allowed[name] / check.truth[name])
    assert check.kind == REALS and np.median(allowed) < (
        0.2 if getattr(workload, "accumulate", "") == "float16" else 0.005
    )
    if not isinstance(workload, Reduction):
        a, b = (check.inputs[name].astype(np.float64) for name in "AB")
        terms = a[:, None, :] * (b if getattr(workload, "transposed", False) else b.T)
        assert (np.abs(np.cumsum(terms, -1)).max(-1) <= workload.largest_sum(a, b) * (1 + 1e-9)).all()
        assert np.abs(a).max() / np.abs(a[a != 0]).min() > 100


def test_layouts_hold_the_same_matrix():
    nt, nn = (HalfGemm(4, 6, 8, layout, "float32") for layout in ("nt", "nn"))
    arguments = nt.arguments()
    assert arguments["B"].shape == (6, 8)
    assert np.array_equal(nt.truth(arguments)["C"], nn.truth(arguments | {"B": arguments["B"].T})["C"])


def test_what_16_byte_accesses_can_take():
    assert HalfGemm(3, 8, 16).aligned
    assert not HalfGemm(8, 8, 12).aligned and not HalfGemm(8, 12, 8).aligned
    assert HalfGemm(3, 8, 16).macros == {}
    assert HalfGemm(3, 9, 16, "nn", "float32").macros == {
        "NT": 0,
        "ACC": "float",
        "ALIGNED": 0,
        "C_ALIGNED": 0,
    }


def test_formats_of_a_half_gemm():
    """How it is named, what twins are told of it, and what it moves."""
    plain, half, brain, mixed = (
        HalfGemm(2, 3, 4),
        HalfGemm(2, 3, 4, "nn", "float32", "float16", "float16"),
        HalfGemm(8, 8, 8, "nt", "float32", "bfloat16", "bfloat16"),
        HalfGemm(8, 8, 8, "nt", "float32", "bfloat16"),
    )
    assert [str(one).partition(" ")[2] for one in (plain, half, brain, mixed)] == [
        "nt float16",
        "nn float32 to float16",
        "nt bfloat16 float32 to bfloat16",
        "nt bfloat16 float32",
    ]
    assert half.macros == {"NT": 0, "ACC": "float", "ALIGNED": 0, "C_ALIGNED": 0, "OUT": "half"}
    assert brain.macros == {"ACC": "float", "IN": "__nv_bfloat16", "OUT": "__nv_bfloat16"}
    assert mixed.macros == {"ACC": "float", "IN": "__nv_bfloat16"}
    assert half.bytes == 2 * (8 + 12) + 2 * 6 and mixed.bytes == 2 * 128 + 4 * 64
    assert brain.parameters["A"] == "const __nv_bfloat16*" and mixed.parameters["C"] == "float*"
    assert (plain.result, mixed.result) == ("float16", "float32")
    assert HalfGemm(2, 3, 4, output="float16") == plain, "the format of the sums, said or not"
    drawn = brain.arguments()
    assert [drawn[name].dtype.name for name in "ABC"] == ["bfloat16"] * 3 and np.isnan(drawn["C"]).all()


@pytest.mark.parametrize("kind", KINDS, ids=" to ".join)
def test_the_algorithm_of_float32_sums_rounds_once(kind):
    """Executed by TVM on the CPU."""
    tvm, gemm = import_tvm(), HalfGemm(3, 5, 70, "nt", "float32", *kind)
    compiled = tvm.compile(tvm.IRModule({"gemm": gemm.prim_func("gemm")}), target="llvm")["gemm"]
    for check in checks_of(gemm):
        given = [tvm.runtime.tensor(check.inputs[name]) for name in "ABC"]
        compiled(*given)
        assert check.mismatch({"C": given[2].numpy()}) is None


def test_tolerance_of_real_numbers_grows_with_the_sum():
    gemm = HalfGemm(2, 2, 100, "nt", "float32")
    arguments = gemm.arguments()
    magnitude = gemm.matmul(np.abs(arguments["A"]), np.abs(arguments["B"]))
    assert gemm.tolerance(arguments)["C"] == pytest.approx(101 * 2**-23 * magnitude, rel=1e-4)
    assert gemm.bytes == 2 * (200 + 200) + 4 * 4
    long = Gemm(2, 2, 1 << 16)
    norm = np.sqrt(sum(gemm_term**2 for gemm_term in terms_of(long)))
    assert long.tolerance(long.arguments())["C"] == pytest.approx(
        10 * 2**8 * 2.0**-24 * SPREAD * norm, rel=1e-4
    )


def terms_of(gemm):
    arguments = gemm.arguments()
    a, b = (arguments[name].astype(np.float64) for name in "AB")
    return [np.outer(a[:, k], b[k]) for k in range(gemm.k)]


@pytest.mark.parametrize("workload", [Gemm(2, 3, 4), HalfGemm(2, 3, 4), Reduction(5)], ids=str)
def test_every_workload_offers_what_the_protocol_says(workload):
    """A type checker holds them to its signatures."""
    offered = [name for name in vars(Workload) if not name.startswith("_")]
    assert "prim_func" in offered and all(hasattr(workload, name) for name in offered)


@pytest.mark.parametrize("n, blocks, chunk", [(10, 1, 10), (10, 1, 4), (12, 3, 4), (11, 2, 4)])
def test_the_algorithm_of_a_reduction_takes_every_element_once(n, blocks, chunk):
    """On whole chunks and on others, executed by TVM on the CPU. One block and one chunk is the plain sum."""
    tvm, workload = import_tvm(), Reduction(n)
    plain = blocks == 1 and chunk == n
    function = workload.prim_func("sums") if plain else workload.partial_sums("sums", blocks, chunk)
    x, y = np.arange(1, n + 1, dtype=np.int32), np.zeros(blocks, np.int32)
    found = tvm.runtime.tensor(y)
    tvm.compile(tvm.IRModule({"sums": function}), target="llvm")["sums"](tvm.runtime.tensor(x), found)
    owner = np.arange(n) // chunk % blocks
    assert [x[owner == block].sum() for block in range(blocks)] == found.numpy().tolist()


@pytest.mark.parametrize("shape", [None, 256, "256", (1, 2), (1.5, 2, 3), ("1", "2", "3")])
def test_a_problem_takes_the_integers_of_its_ladder(shape):
    with pytest.raises(BadInput, match="the shape of sgemm is .M, N, K., all integers, not"):
        Problem("sgemm", shape)


@pytest.mark.parametrize("ladder", [None, "gemm", ["sgemm"]])
def test_a_problem_of_no_ladder_is_refused(ladder):
    with pytest.raises(BadInput, match="there is no ladder"):
        Problem(ladder)


@pytest.mark.parametrize("shape", [[16, 8, 4], np.array([16, 8, 4])])
def test_a_list_is_as_good_as_a_tuple(shape):
    problem = Problem("sgemm", shape)
    assert problem == Problem("sgemm", (16, 8, 4)) and problem.includes(Gemm(16, 8, 4))
    assert hash(problem) and all(type(extent) is int for extent in problem.shape)


def test_a_workload_of_another_ladder_is_refused_in_one_line():
    (rung,) = find("hgemm/wmma_naive")
    with pytest.raises(BadInput, match=r"hgemm/wmma_naive takes a HalfGemm, not Gemm\(m=16"):
        launches(load_twin, rung, Gemm(16, 16, 16), "sm_80")
