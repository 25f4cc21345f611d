"""Functions of TensorIR of one's own: emitted, executed, judged, counted, traced, or refused in a line."""

import os
import re
import signal
from functools import partial

import numpy as np
import own_functions as own
import pytest
import tvm

import tir_schedules as ts
from tir_schedules.api import requests
from tir_schedules.api.functions import computed, in_child
from tir_schedules.compiler.lower import scheduled

SOFTMAX = "exp(X - max(X, axis=1, keepdims=True))"
BY_HAND = """\
extern "C" __global__ void mine(const float *A, const float *B, float *C) {
  int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 8 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 32; ++k) sum += A[i * 32 + k] * B[k * 32 + j];
  C[i * 32 + j] = sum;
}
"""


def test_a_schedule_is_emitted_in_every_form():
    code = ts.emit(own.scheduled())
    assert "__launch_bounds__(64) matmul(float* __restrict__ A_ptr" in code.text
    assert (code.entry, code.params, code.grid, code.block) == (
        "matmul",
        ("A", "B", "C"),
        (4, 4, 1),
        (8, 8, 1),
    )
    assert ".entry matmul" in ts.emit(own.scheduled(), form="ptx", arch="sm_90").text
    assert "FFMA" in ts.emit(own.scheduled(), form="sass").text
    assert 'thread="blockIdx.y"' in ts.emit(own.scheduled(), form="tir").text


CASES = {
    "a matmul": (own.matmul, {"schedule": own.tiled, "expect": {"C": "A @ B"}}),
    "a reduction without a name": (own.row_sums, {"schedule": own.rows, "expect": {"Y": "sum(X, axis=1)"}}),
    "a softmax": (own.softmax, {"expect": {"Y": f"{SOFTMAX} / sum({SOFTMAX}, axis=1, keepdims=True)"}}),
    "int8": (own.int8_dot, {"expect": {"C": "A @ B.T"}}),
    "two outputs": (own.bounds, {"expect": {"low": "min(X, axis=1)", "high": "max(X, axis=1)"}}),
    "in place, a number": (own.scaled_in_place, {"arguments": {"alpha": 3.0}, "expect": {"X": "alpha * X"}}),
    "bfloat16": (own.doubled_bfloat16, {"expect": {"Y": "X + X"}}),
    "threads by launch_thread": (own.by_hand, {"expect": {"B": "A + 1"}}),
    "bool": (own.masked, {"expect": {"B": "where(M, A, 0)"}}),
    "symbolic extents": (
        own.of_any_size,
        {"schedule": own.flat, "sizes": {"n": 10, "m": 20}, "arguments": {"s": 2}, "expect": {"B": "s * A"}},
    ),
    "extents by the arrays": (
        own.of_any_size,
        {
            "schedule": own.flat,
            "sizes": {"m": 20, "s": 0.5},
            "arguments": {"A": np.ones((3, 20), np.float32)},
            "expect": {"B": "A / 2"},
        },
    ),
}


@pytest.mark.parametrize("function, options", CASES.values(), ids=CASES)
def test_kernels_of_all_kinds_are_judged(function, options):
    right = ts.check(function, **options)
    assert right.verdict == "pass" and right.ok, right.faults
    wrong = ts.check(function, **options | {"expect": {k: f"{v} + 1" for k, v in options["expect"].items()}})
    assert wrong.verdict == "FAIL" and not wrong.ok and wrong.faults


@pytest.mark.parametrize(
    "function, schedule, arguments",
    [(own.matmul, own.tiled, {}), (own.row_sums, own.rows, {}), (own.of_any_size, own.flat, {"s": 2.0})],
)
def test_a_function_says_itself_what_its_schedule_should_compute(monkeypatch, function, schedule, arguments):
    before = function.script()
    result = ts.check(function, schedule=schedule, arguments=arguments, sizes={"n": 10, "m": 20})
    assert result.verdict == "pass" and function.script() == before

    monkeypatch.setattr(requests, "computed", lambda *given: {k: v + 1 for k, v in computed(*given).items()})
    wrong = ts.check(function, schedule=schedule, arguments=arguments, sizes={"n": 10, "m": 20})
    assert wrong.verdict == "FAIL"


def test_arrays_go_in_and_come_out():
    a, b = (np.random.default_rng(seed).normal(size=(32, 32)).astype(np.float32) for seed in (1, 2))
    result = ts.run(own.scheduled(), arguments=[a, b])
    assert result.verdict == "no hazard" and np.allclose(result.outputs["C"], a @ b, atol=1e-4)
    assert result.counters[0].accesses["global_store"].requests == 32
    ones = ts.run(own.scheduled(), arguments={"A": "f32[32,32]:ones", "B": "f32[32,32]:2"}, outputs=["C"])
    assert np.array_equal(ones.outputs["C"], np.full((32, 32), 64))


def test_an_array_that_counts_as_unwritten_is_not_to_be_read():
    given = {"X": X.tolist(), "alpha": 2.0}
    assert ts.run(own.scaled_in_place, arguments=given).verdict == "no hazard"
    read = ts.run(own.scaled_in_place, arguments={"alpha": 2.0}, outputs="X")
    assert [finding.kind for finding in read.findings] == ["uninitialized"]


def test_a_function_that_is_two_kernels_is_an_error():
    result = ts.check(own.two_kernels)
    assert result.verdict == "ERROR" and result.faults[0].endswith(
        "must end in one CUDA kernel; it ends in 2"
    )


def test_the_schedule_of_a_rung_is_one_of_anybody():
    rung, workload = ts.rung("hgemm/mma_multistage"), ts.workload("hgemm", mnk=(128, 128, 64))
    assert ts.check(scheduled(rung, workload), expect={"C": "A @ B.T"}).ok
    rung, workload = ts.rung("sgemm/naive"), ts.workload("sgemm", mnk=(32, 32, 32))
    trace = ts.trace(scheduled(rung, workload), original=workload.prim_func("matmul"))
    calls = [state.step.call for state in trace.states[1:]]
    assert trace.right and "sch.reverse_compute_at(C_local, j_1, True)" in calls
    twin = ts.emit("sgemm/coalesced", twin=True, workload=workload).text
    sizes = dict.fromkeys("MNK", 32)
    assert ts.check(own.scheduled(), beside=twin, grid=1, block=(32, 32), sizes=sizes).identical


def test_it_is_compared_with_cuda_beside_it(tmp_path):
    file = tmp_path / "mine.cu"
    file.write_text(BY_HAND)
    both = ts.check(own.scheduled(), expect={"C": "A @ B"}, beside=f"{file}:mine")
    assert both.ok and both.identical and both.beside.verdict == "pass" and not both.disagreement
    assert [one["kernel"] for one in both.to_json()] == ["matmul", "mine"]
    short = ts.check(own.scheduled(), expect={"C": "A @ B"}, beside=BY_HAND.replace("k < 32", "k < 31"))
    assert short.verdict == "FAIL" and short.beside.verdict == "FAIL" and "mine: C[" in short.faults[0]
    differing = ts.check(own.scheduled(), beside=BY_HAND.replace("= sum;", "= 1.01f * sum;"))
    assert differing.verdict == "twins disagree" and "apart would do" in differing.disagreement
    assert str(differing).endswith(differing.disagreement)
    by_itself = ts.check(own.matmul, schedule=own.tiled, beside=BY_HAND.replace("k < 32", "k < 31"))
    assert by_itself.verdict == "FAIL" == by_itself.beside.verdict and len(by_itself.faults) == 1
    near = ts.check(own.scheduled(), beside=BY_HAND.replace("= sum;", "= sum + 1e-6f;"))
    assert near.ok and near.identical is False


def test_what_it_costs_is_counted():
    costs = ts.inspect(own.scheduled(), beside=BY_HAND)
    assert list(costs.launches) == ["matmul", "mine"] and costs.ok
    assert costs.launches["matmul"].access("global_store").cost == 128
    assert "registers per thread" in str(costs) and "<table>" in costs._repr_html_()
    slower = ts.inspect(own.scheduled(), beside=BY_HAND.replace("i * 32 + k", "i * 32 + (k ^ j)"))
    assert "what differs most" in str(slower) and slower.to_json()["differences"]
    assert "C_ptr[" in str(ts.inspect(own.scheduled(), view="lines"))
    assert ts.inspect(own.softmax).to_json()[0]["launches"][0]["grid"] == [4, 1, 1]


@pytest.mark.parametrize("given", [{"schedule": own.tiled}, {"original": own.matmul}])
def test_its_schedule_is_traced(given):
    trace = ts.trace(own.scheduled() if "original" in given else own.matmul, **given)
    assert trace.right and len(trace.states) == 10
    assert [state.step.call for state in trace.states[1:3]] == [
        "i_0, i_1 = sch.split(i, [None, 8])",
        "j_0, j_1 = sch.split(j, [None, 8])",
    ]
    assert trace.states[-1].measured.right and "own/matmul, step by step" in trace.page()
    wrong = ts.trace(own.matmul, schedule=own.tiled, expect={"C": "A @ B + 1"})
    assert not wrong.right and "should be" in wrong.states[-1].measured.wrong


def test_a_guarded_edge_is_right_in_a_trace():
    options = {"schedule": own.flat, "sizes": {"n": 10, "m": 20}, "arguments": {"s": 2.0}}
    assert ts.trace(own.of_any_size, **options).right
    assert ts.trace(own.row_sums, schedule=own.rows).right  # with calls by keyword


def outside(sch):
    i, j, _ = sch.get_loops(sch.get_sblock("C"))
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    sch.cache_read(sch.get_sblock("C"), 0, "shared")


def failing(sch):
    i, j = sch.get_loops(sch.get_sblock("C"))


def refused(sch):
    sch.get_sblock("D")


def peeled(sch):
    i, j, _ = sch.get_loops(sch.get_sblock("C"))
    sch.bind(i, "blockIdx.x")
    sch.peel_last(j)
    sch.bind(j, "threadIdx.x")


class Callable:
    def __call__(self, sch):
        refused(sch)


def with_primitive(of):
    """A schedule that makes one call."""

    def schedule(sch):
        block = sch.get_sblock("C")
        of(sch, block, *sch.get_loops(block))

    return schedule


MISTAKES = {
    "factors of a split": (
        lambda sch, block, i, j, k: sch.split(i, [2, 3]),
        "The product of factors is not larger than or equal to the extent of loop i",
    ),
    "two open factors": (lambda sch, block, i, j, k: sch.split(i, [None, None]), "Only one factor can be"),
    "a thread of no GPU": (lambda sch, block, i, j, k: sch.bind(i, "thread"), "Unknown threadscope thread"),
    "a loop around the block": (
        lambda sch, block, i, j, k: sch.compute_at(block, k),
        "Expected the block C and loop k to be under the same",
    ),
    "an unknown intrinsic": (
        lambda sch, block, i, j, k: sch.tensorize(i, "mma"),
        "TensorIntrin 'mma' is not registered",
    ),
    "a vector of a sum": (
        lambda sch, block, i, j, k: sch.vectorize(k),
        'The "vectorize" cannot be fulfilled with regard to block C because',
    ),
    "an unknown memory": (
        lambda sch, block, i, j, k: sch.set_scope(block, 0, "near"),
        'The input storage scope "near" is invalid.',
    ),
    "a block for a loop": (lambda sch, block, i, j, k: sch.split(block, [None, 4]), "wrong type"),
    "no primitive": (lambda sch, block, i, j, k: sch.get_loop(block), "no attribute 'get_loop'"),
}


@pytest.mark.parametrize("of, told", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_with_the_line_of_the_schedule(of, told):
    place = rf"test_functions.py:{of.__code__.co_firstlineno}: matmul: "
    checked, traced = (call(own.matmul, schedule=with_primitive(of)) for call in (ts.check, ts.trace))
    for said in (*checked.faults, traced.refusal):
        assert re.match(place, said) and told in said and "\n" not in said, said
    assert len(checked.faults) == 1 and not traced.ok


@pytest.mark.parametrize(
    "schedule, told",
    [
        (outside, r"matmul: test_functions.py:\d+: block A_shared is outside of the loops that are bound"),
        (failing, r"test_functions.py:\d+: matmul: the schedule fails: ValueError: too many values"),
        (
            refused,
            r"test_functions.py:\d+: matmul: TVM refuses the schedule: Cannot find a block with the name: D",
        ),
        (partial(refused), r"test_functions.py:\d+: matmul: TVM refuses"),
        (Callable(), r"test_functions.py:\d+: matmul: TVM refuses"),
        (peeled, r"matmul: test_functions.py:\d+: loop j is bound to threadIdx.x, and no iteration"),
    ],
)
def test_a_schedule_that_is_no_kernel_is_an_error_with_its_line(schedule, told):
    result = ts.check(own.matmul, schedule=schedule)
    assert result.verdict == "ERROR" and re.match(told, result.faults[0]), result.faults
    with pytest.raises(ts.CheckFailed, match=told):
        ts.emit(own.matmul, schedule=schedule)


MODULE = tvm.IRModule({"first": own.scaled_in_place, "second": own.softmax, "third": own.matmul})


def test_one_function_of_a_module_is_named():
    assert ts.check(MODULE, "first", arguments={"alpha": 2}).ok
    assert ts.emit(MODULE, kernel="second").entry == "softmax"
    one_is_bound = tvm.IRModule({"second": own.softmax, "third": own.matmul})
    assert ts.emit(one_is_bound).entry == "softmax"


X = np.ones(256, np.float32)
HOPPER = ts.workload("hgemm/tma", mnk=(128, 128, 64))


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: ts.emit(own.matmul), "matmul has no loops on blocks and threads: bind them, sch.bind"),
        (lambda: ts.emit(MODULE), "the module has 3 functions: name one, kernel='first'"),
        (lambda: ts.emit(MODULE, kernel="secnd"), "has no function 'secnd', did you mean 'second'"),
        (lambda: ts.emit(tvm.IRModule()), "no PrimFunc"),
        (
            lambda: ts.emit(own.of_any_size, schedule=own.flat),
            "has n: say what it is, such as sizes={'n': 1024}",
        ),
        (lambda: ts.check(own.scaled_in_place), "nothing is given for float32 alpha"),
        (lambda: ts.check(own.scaled_in_place, arguments=[X, 2, 3]), "3 arguments are given"),
        (lambda: ts.check(own.scaled_in_place, arguments={"alpha": 2, "x": X}), "has no parameter 'x'"),
        (lambda: ts.check(own.scaled_in_place, arguments=[X[1:], 2]), "float32[256], not float32[255]"),
        (lambda: ts.check(own.scaled_in_place, arguments=[np.ones(256), 2]), ".astype('float32')"),
        (lambda: ts.check(own.scaled_in_place, arguments=[3, 2]), "is an array float32[256], not '3'"),
        (lambda: ts.check(own.scaled_in_place, arguments=[{1}, 2]), "give an array of numpy"),
        (lambda: ts.check(own.softmax, expect={"Z": "X"}), "there is no array 'Z'"),
        (lambda: ts.check(own.softmax, mnk=(1, 2, 3)), "mnk is for rungs"),
        (lambda: ts.check(own.softmax, expct={"Y": "X"}), "takes no 'expct', did you mean 'expect'"),
        (lambda: ts.check(own.softmax, beside="none.cu"), "none.cu"),
        (lambda: ts.check(own.softmax, beside="sgemm/naive"), "that of a rung is emit(rung, twin=True).text"),
        (lambda: ts.check(own.softmax, grid=4), "grid= is for CUDA"),
        (lambda: ts.check(own.softmax, expect="X"), "expect is 'X'; it takes a dictionary"),
        (lambda: ts.check(own.softmax, expect={"Y": print}), "expect of Y is a function; it takes an array"),
        (lambda: ts.bench(own.softmax), "bench takes a rung, not a function of TVM's"),
        (lambda: ts.tune(own.softmax), "tune takes a rung, not a function of TVM's"),
        (lambda: ts.check(scheduled(ts.rung("hgemm/tma"), HOPPER), arch="sm_90a"), "takes tensor maps"),
        (lambda: ts.emit(own.of_float8), "float8"),
        (lambda: ts.emit(own.softmax, twin=True), "has no twin"),
        (lambda: ts.emit(own.softmax, arch="sm_1"), "sm_1"),
        (lambda: ts.emit(own.softmax, form="tri"), "form is 'tri'"),
        (lambda: ts.emit(tvm.target.Target("llvm")), "a Target of TVM's is not a kernel"),
        (lambda: ts.trace(own.scheduled()), "say original=function"),
        (lambda: ts.trace(own.matmul), "say original=function"),
        (lambda: ts.trace(own.softmax, schedule=own.tiled), "is scheduled already"),
        (lambda: ts.trace(own.matmul, original=own.matmul), "goes with a Schedule"),
        (lambda: ts.run(own.softmax, own.softmax), "one function of TVM's at a time"),
    ],
)
def test_bad_input_is_one_line(call, told):
    with pytest.raises(ts.BadInput, match=re.escape(told)) as raised:
        call()
    assert "\n" not in str(raised.value) and "--" not in str(raised.value)


def test_a_function_that_crashes_on_the_host_ends_a_child_alone():
    with pytest.raises(ts.CheckFailed, match="wild itself, without its schedule, ends the process .*SIGSEGV"):
        in_child("wild", lambda: os.kill(os.getpid(), signal.SIGSEGV), {})


def on_threads(sch):
    sch.bind(sch.get_loops(sch.get_sblock("B"))[0], "threadIdx.x")


@pytest.mark.parametrize(
    "function, told",
    [
        (own.reads_beyond, "reads A[64], which is outside of its shape (64,)"),
        (own.writes_before, "writes B[-1], which is outside of its shape (64,)"),
        (own.reads_beyond_a_row, "reads A[0, 8], which is outside of its shape (4, 8)"),
    ],
)
def test_a_function_that_leaves_its_buffers_says_nothing_of_what_is_right(function, told):
    result = ts.check(function, schedule=on_threads)
    assert result.verdict == "ERROR" and result.faults[0].endswith(f"itself, without its schedule, {told}")
    with pytest.raises(ts.CheckFailed, match=re.escape(told)):
        ts.trace(function, schedule=on_threads)
    assert ts.check(own.reads_beyond_guarded, schedule=on_threads).verdict == "pass"
