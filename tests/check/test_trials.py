"""What inputs kernels are run with, and how far off they may be. Kernels here are functions of numpy that are
wrong as kernels are wrong."""

import numpy as np
import pytest

from tir_schedules.check.arguments import Argument, Given, make_argument
from tir_schedules.check.expecting import Expected
from tir_schedules.check.preparing import all_trials
from tir_schedules.check.target import arithmetic_of
from tir_schedules.check.trials import Question
from tir_schedules.check.types import Arithmetic, dtype_of
from tir_schedules.errors import BadInput

f32 = np.float32
IN_HALVES = Arithmetic(frozenset({"f16"}), frozenset({"f16"}))


def arrays(**texts):
    """Arguments as --arg has them."""
    return {
        name: make_argument(Given(name, text), {}, "", None, number)
        if isinstance(text, str)
        else Argument(text)
        for number, (name, text) in enumerate(texts.items())
    }


def trials(expect, given, arithmetic=Arithmetic(), finite=True, tolerance=None, **sizes):
    expected = Expected("y", expect)
    return all_trials(
        Question([expected], sizes, tolerance, arithmetic, 0, frozenset(), finite), arrays(**given)
    )


def verdict(kernel, expect, given, **options):
    """The kind of inputs with which a kernel is found wrong, or "pass". kernel: takes float32 arrays by their
    names."""
    for trial in trials(expect, given, **options).runs:
        values = {name: one.value for name, one in trial.arguments.items()}
        names = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
        with np.errstate(all="ignore"):
            found = np.asarray(kernel(*(values[name].astype(np.float32) for name in names)))
            made = found.astype(values["y"].dtype).reshape(values["y"].shape)
        (truth,) = trial.truths.values()
        if truth.mismatch("y", made):
            return trial.kind or "random"
    return "pass"


def softmax(x, left_out=0):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e[:, : x.shape[1] - left_out].sum(1, keepdims=True)


def normalise(x, n):
    off = x - x.mean(1, keepdims=True)
    return off / np.sqrt((off * off)[:, :n].sum(1, keepdims=True) / x.shape[1] + 1e-5)


NORMALISED = "(x - mean(x, axis=1, keepdims=True)) / sqrt(var(x, axis=1, keepdims=True) + 1e-5)"
SOFTMAX = "exp(x) / sum(exp(x), axis=1, keepdims=True)"
ROWS = dict(x="f16[8,256]", y="f16[8,256]:out")
WRONG = {
    "one of 100,000 is left out of a mean": (
        lambda x: x[:-1].sum() / x.size, "mean(x)", dict(x="f32[100000]", y="f32[1]:out")),
    "one is taken twice": (
        lambda x: (x.sum() + x[77]) / x.size, "mean(x)", dict(x="f32[100000]", y="f32[1]:out")),
    "a mean in halves is 0": (
        lambda x: 0 * x[:, 0], "mean(x, axis=1)", dict(x="f16[8,1000]", y="f16[8]:out")),
    "one of a row in halves": (
        lambda x: x[:, 1:].sum(1) / x.shape[1], "mean(x, axis=1)", dict(x="f16[8,1000]", y="f16[8]:out")),
    "columns of a softmax": (lambda x: softmax(x, 32), SOFTMAX, ROWS),
    "one column of a long softmax": (
        lambda x: softmax(x, 1), SOFTMAX, dict(x="f16[2,4096]", y="f16[2,4096]:out")),
    "16 of a variance": (lambda x: normalise(x, x.shape[1] - 16), NORMALISED, ROWS),
    "the end of K": (
        lambda a, b: a[:, :-8] @ b[:-8] * np.float32(0.1), "a @ b * 0.1",
        dict(a="f16[32,256]", b="f16[256,32]", y="f16[32,32]:out")),
    "numbers in a range": (
        lambda x: x[np.arange(x.size) % 10000 != 9999].sum(), "sum(x)",
        dict(x="f32[100000]:0..1", y="f32[1]:out")),
    "another constant": (lambda x: x * np.float32(0.1001), "x * 0.1", dict(x="f32[64]", y="f32[64]:out")),
    "the largest is left out": (lambda x: x[:-1].max(), "max(x)", dict(x="f32[300]", y="f32[1]:out")),
    "no epsilon": (
        lambda x: x / np.sqrt((x * x).mean(1, keepdims=True)),
        "x / sqrt(mean(x * x, axis=1, keepdims=True) + 1e-5)", dict(x="f32[4,64]", y="f32[4,64]:out")),
    "a maximum that begins at 0": (
        lambda x: np.maximum(x.max(1), 0), "max(x, axis=1)", dict(x="f32[4,300]", y="f32[4]:out")),
    "the last of equal numbers": (
        lambda x: x.size - 1 - np.argmax(x[::-1]), "argmax(x)", dict(x="f32[300]", y="i32[1]:out")),
    "the end is left out of the least": (
        lambda x: x.max(1) - x[:, :-2].min(1), "max(x, axis=1) - min(x, axis=1)",
        dict(x="f32[4,131]", y="f32[4]:out")),
    "halves are rounded away from 0": (
        lambda x: np.sign(x) * np.floor(np.abs(2 * x) + np.float32(0.5)), "rint(2 * x)",
        dict(x="f32[300]", y="f32[300]:out")),
    ">= for >": (
        lambda x: np.where(x >= 0.5, x, 0), "where(x > 0.5, x, 0)", dict(x="f32[300]", y="f32[300]:out")),
    "cut off to 16 bits": (
        lambda x: (x.view(np.uint32) & 0xFFFFE000).view(np.float32), "x",
        dict(x="f32[300]", y="f16[300]:out")),
}  # fmt: skip


ONLY_FLOAT32 = "one column of a long softmax", "cut off to 16 bits"
"""Sums of as many halves are off by as much as one of them; halves are rounded more than once."""


@pytest.mark.parametrize("kernel, expect, given", WRONG.values(), ids=WRONG)
def test_what_is_left_out_shows(kernel, expect, given):
    assert verdict(kernel, expect, given) != "pass"


@pytest.mark.parametrize("name", [name for name in WRONG if name not in ONLY_FLOAT32])
def test_what_is_left_out_shows_also_where_a_kernel_has_arithmetic_of_halves(name):
    kernel, expect, given = WRONG[name]
    assert verdict(kernel, expect, given, arithmetic=IN_HALVES) != "pass"


def in_halves(x):
    total = np.zeros(x.shape[0], np.float16)
    for column in x.astype(np.float16).T:
        total = total + column
    return total / np.float16(x.shape[1])


RIGHT = {
    "a mean by another order": (
        lambda x: sum(x[k::32].sum() for k in range(32)) * np.float32(1 / 3000), "mean(x)",
        dict(x="f32[3000]", y="f32[1]:out")),
    "a softmax": (lambda x: softmax(x), SOFTMAX, ROWS),
    "layer norm": (lambda x: normalise(x, 256), NORMALISED, ROWS),
    "variance by squares": (
        lambda x: (x * x).mean(1) - x.mean(1) ** 2, "var(x, axis=1)", dict(x="f32[8,512]", y="f32[8]:out")),
    "the largest": (lambda x: x.max(), "max(x)", dict(x="f32[300]", y="f32[1]:out")),
    "a constant of float32": (
        lambda x: x - np.float32(0.1), "x - 0.1", dict(x=np.float32([0.1, 0.7]), y="f32[2]:out")),
}  # fmt: skip


@pytest.mark.parametrize("kernel, expect, given", RIGHT.values(), ids=RIGHT)
def test_what_is_right_passes_also_with_special_numbers(kernel, expect, given):
    assert verdict(kernel, expect, given, finite=False) == "pass"


def test_sums_in_halves_pass_where_the_kernel_has_them():
    given = dict(x="f16[8,400]", y="f16[8]:out")
    assert verdict(in_halves, "mean(x, axis=1)", given, arithmetic=IN_HALVES) == "pass"
    assert verdict(in_halves, "mean(x, axis=1)", given) != "pass"


SPECIAL = {
    "NaN becomes 0": (lambda x: np.nan_to_num(2 * x, nan=0.0, posinf=np.inf), "2 * x", "NaN"),
    "NaN spreads to the neighbour": (lambda x: 2 * x + 0 * np.roll(x, 1), "2 * x", "NaN"),
    "infinity becomes the largest number": (lambda x: np.clip(2 * x, -3e38, 3e38), "2 * x", "infinite"),
    "a tanh of exponentials": (
        lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1), "tanh(x)", "infinite"),
}  # fmt: skip


@pytest.mark.parametrize("kernel, expect, kind", SPECIAL.values(), ids=SPECIAL)
def test_special_numbers_are_judged_by_ieee_rules(kernel, expect, kind):
    given = dict(x="f32[100]", y="f32[100]:out")
    assert verdict(kernel, expect, given, finite=False) == kind
    assert verdict(kernel, expect, given, finite=True) == "pass"


OVERFLOWS = {
    "a norm of affine": (
        lambda x, w, b: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * w + b,
        f"{NORMALISED} * w + b", dict(x="f32[8,200]", w="f32[200]", b="f32[200]", y="f32[8,200]:out")),
    "a small step": (
        lambda x, r: r + np.float32(0.001) * x / np.sqrt(1 + x * x), "r + 0.001 * x / sqrt(1 + x * x)",
        dict(x="f32[99]", r="f32[99]", y="f32[99]:out")),
    "relu of a product": (
        lambda a, b: np.fmax(a @ b, 0), "maximum(a @ b, 0)",
        dict(a="f32[9,40]", b="f32[40,9]", y="f32[9,9]:out")),
    "fmaxf of NaN": (
        lambda x: np.fmax(x / (1 + x), 0), "maximum(x / (1 + x), 0)", dict(x="f32[9]", y="f32[9]:out")),
    "numbers that are nearly equal": (
        lambda x: np.where(x * np.float32(0.1) > np.float32(0.3), 1, 0), "where(x * 0.1 > 0.3, 1, 0)",
        dict(x=np.float32([3]), y="f32[1]:out")),
    "silu of a convolution": (
        lambda x: (x[:-1] * x[1:]) / (1 + np.exp(-(x[:-1] * x[1:]) * 4)),
        "x[:-1] * x[1:] / (1 + exp(-x[:-1] * x[1:] * 4))", dict(x="f32[99]", y="f32[98]:out")),
    "the nearest of some": (
        lambda x, c: ((x[:, None] - c) ** 2).sum(2).argmin(1),
        "argmin(sum((x[:, None] - c) ** 2, axis=2), axis=1)",
        dict(x="f32[99,3]", c="f32[5,3]", y="i32[99]:out")),
    "a weighted histogram": (
        lambda x, k: [np.add.reduce(np.cumsum(x[k == at])[-1:]) for at in range(9)],
        "bincount(k, weights=x, minlength=9)",
        dict(x="f32[700]", k="i32[700]:0..8", y="f32[9]:out")),
}  # fmt: skip


@pytest.mark.parametrize("kernel, expect, given", OVERFLOWS.values(), ids=OVERFLOWS)
def test_float32_may_overflow_and_rounding_may_decide(kernel, expect, given):
    assert verdict(kernel, expect, given, finite=False) == "pass"


@pytest.mark.parametrize("kernel, expect", [
    (lambda x: x / np.sqrt((x * x).mean()), "x / sqrt(mean(x * x) + eps)"),
    (lambda x: np.where(x >= 0.5, x, 0), "where(x > eps, x, 0)"),
])  # fmt: skip
def test_a_real_that_is_given_counts_as_a_constant(kernel, expect):
    assert verdict(kernel, expect, dict(x="f32[64]", y="f32[64]:out"), eps=0.5) != "pass"


def test_functions_are_run_where_kernels_cut_them_off():
    given = dict(x="f32[900]", y="f32[900]:out")
    expect = "1 / (1 + exp(-x))"
    assert verdict(lambda x: 1 / (1 + np.exp(-x)), expect, given) == "pass"
    assert verdict(lambda x: np.where(x > 6, 1, 1 / (1 + np.exp(-x))), expect, given) == "wide"


LENIENT = {
    "fmaxf drops NaN": (lambda x: np.fmax(x, 0), "maximum(x, 0)"),
    "max of comparisons": (lambda x: np.where(x > 0, x, 0), "maximum(x, 0)"),
    "a mask in place of a product with 0": (
        lambda x: np.where(np.arange(100) % 2, x, 0), "x * (arange(100) % 2)"),
    "the largest is taken off first": (
        lambda x: np.log(np.exp(x - x.max()).sum()) + x.max() + 0 * x, "log(sum(exp(x))) + 0 * x"),
    "overflow on the way": (lambda x: x, "x * 1e30 / 1e30"),
}  # fmt: skip


@pytest.mark.parametrize("kernel, expect", LENIENT.values(), ids=LENIENT)
def test_what_differs_between_right_kernels_is_not_judged(kernel, expect):
    assert verdict(kernel, expect, dict(x="f32[100]", y="f32[100]:out"), finite=False) == "pass"


def test_what_no_run_can_show_is_said():
    (told,) = trials("7 + 0 * x", dict(x="f32[100]", y="f32[100]:out")).unshown
    assert told == "no expected value depends on x in any run"
    found = trials("sum(x) + 1e9", dict(x=np.ones(64, np.float32), y="f32[1]:out"))
    (told,) = found.unshown
    assert "without it an expected value changes by 1, and rounding explains" in told and found.loose
    assert trials("sum(x)", dict(x="f32[64]", y="f32[1]:out")).unshown == ()
    for column in range(0, 64, 3):  # which may have no element among those that are sampled
        assert trials(f"x[:, {column}]", dict(x="f32[16,64]", y="f32[16]:out")).unshown == ()


def test_a_tolerance_of_the_users_is_the_only_one():
    found = trials("2 * x", dict(x="f32[10]", y="f32[10]:out"), tolerance=0.5)
    (trial,) = found.runs
    assert np.all(trial.truths["y[]"].allowed >= 0.5)


def test_each_element_of_a_file_has_a_tolerance_of_its_own():
    for format in ("f16", "bf16", "f32", "f64"):
        value = np.array([1e4, 2, -1e-3]).astype(dtype_of(format))
        (trial,) = trials(value, dict(y=f"{format}[3]:out")).runs
        (truth,) = trial.truths.values()
        assert truth.mismatch("y", value) is None
        for k in range(3):
            wrong = value.copy()
            wrong[k] = 0
            assert truth.mismatch("y", wrong).index == (k,), format


def test_integers_overflow_in_one_run():
    *_, most, least = trials("(x + x) // 2", dict(x="i32[50]", y="i32[50]:out"), finite=False).runs
    assert (most.kind, least.kind) == ("infinite", "negative infinite")
    for trial in (most, least):
        x = trial.arguments["x"].value
        (truth,) = trial.truths.values()
        assert truth.mismatch("y", (x + x) // 2) and truth.mismatch("y", x) is None
    assert trials("x + 1", dict(x="i32[50]:0..9", y="i32[50]:out"), finite=False).runs[0].kind == ""


OF_INTEGERS = {
    "the largest begins with 0": (lambda x: max(0, x.max()), "max(x)", "i32[1]"),
    "the least begins with 0": (lambda x: min(0, x.min()), "min(x)", "i32[1]"),
    "clipped at 254": (lambda x: x.clip(0, 254), "clip(x, 0, 255)", "i32[50]"),
    "at the border": (lambda x: (x >= 700).astype(int), "where(x > 700, 1, 0)", "i32[50]"),
    "wraps where it should be cut off": (lambda x: x + x, "clip(x + x, -2**31, 2**31 - 1)", "i32[50]"),
}


@pytest.mark.parametrize("kernel, expect, output", OF_INTEGERS.values(), ids=OF_INTEGERS)
def test_wrong_comparisons_of_integers_are_found(kernel, expect, output):
    found = trials(expect, dict(x="i32[50]", y=f"{output}:out"), finite=False).runs
    wrong = []
    for trial in found:
        (truth,) = trial.truths.values()
        made = np.asarray(kernel(trial.arguments["x"].value), np.int32)
        wrong.append(truth.mismatch("y", made.reshape(trial.arguments["y"].value.shape)))
    assert any(wrong) and not wrong[0]  # random numbers alone do not show it


@pytest.mark.parametrize("expect, output", [("clip(x + x, 0, 255)", "50"), ("max(x[:-1] + x[1:])", "1")])
def test_comparisons_of_sums_that_wrap_are_not_judged(expect, output):
    """The least and the largest integers are among the inputs: a kernel adds in their format."""
    kernel = {"50": lambda x: (x + x).clip(0, 255), "1": lambda x: (x[:-1] + x[1:]).max().reshape(1)}[output]
    found = trials(expect, dict(x="i32[50]", y=f"i32[{output}]:out"), finite=False).runs
    assert "negative infinite" in [trial.kind for trial in found]
    for trial in found:
        (truth,) = trial.truths.values()
        with np.errstate(over="ignore"):
            assert truth.mismatch("y", kernel(trial.arguments["x"].value)) is None, trial.kind


def test_numbers_of_8_bits_are_drawn_from_all():
    (trial, *_) = trials("x", dict(x="u8[9000]", y="u8[9000]:out")).runs
    assert {0, 255} <= {*trial.arguments["x"].value.tolist()}


def test_integers_are_compared_as_integers():
    large = np.array([2**60, 2**60 + 1, -(2**62)], np.int64)
    (trial,) = trials("x + 1", dict(x=large, y=np.zeros(3, np.int64))).runs
    (truth,) = trial.truths.values()
    assert truth.mismatch("y", large + 1) is None
    mismatch = truth.mismatch("y", large + np.array([1, 2, 1]))
    assert (mismatch.index, mismatch.error) == ((1,), 1.0) and str(2**60 + 3) in str(mismatch)
    unsigned = np.array([2**64 - 1, 5], np.uint64)
    (trial,) = trials("x + 1", dict(x=unsigned, y=np.zeros(2, np.uint64))).runs
    (truth,) = trial.truths.values()
    assert truth.mismatch("y", np.array([0, 6], np.uint64)) is None
    assert truth.mismatch("y", np.array([0, 5], np.uint64)).index == (1,)


def test_not_a_number_is_right_where_it_should_be():
    given = dict(x=np.array([4.0, -1.0], np.float32), y="f32[2]:out")
    (trial, *_) = trials("sqrt(x)", given).runs
    (truth,) = trial.truths.values()
    assert truth.mismatch("y", np.float32([2, np.nan])) is None
    assert truth.mismatch("y", np.float32([2, 0])).index == (1,)
    with pytest.raises(BadInput, match="it is NaN for these inputs"):
        trials("sqrt(x)", dict(x=np.float32([-1]), y="f32[1]:out"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("format", ["f16", "bf16", "f32"])
def test_borders_are_finite_also_beside_the_largest_numbers(format):
    given = dict(x=f"{format}[64]", y="f32[64]:out")
    for number in (65504.0, 3.4028234663852886e38, 1e300):
        runs = trials(f"maximum(x, 0) / {number}", given).runs
        (border,) = (trial for trial in runs if trial.kind == "border")
        assert np.isfinite(border.arguments["x"].value.astype(float)).all()


TINY = {
    "products": (lambda x: x * f32(1e-20) * f32(1e-20) * f32(1e20), "x * 1e-20 * 1e-20 * 1e20"),
    "quotients": (lambda x: x / f32(3e38) * f32(32), "x / 3e38 * 32"),
    "powers of two": (lambda x: x * f32(2.0**-130) * f32(2.0**120), "x * 2.0**-130 * 2.0**120"),
    "powers": (lambda x: np.exp(f32(-100) + x) * f32(1e30), "exp(-100 + x) * 1e30"),
}


@pytest.mark.parametrize("kernel, expect", TINY.values(), ids=TINY)
def test_denormal_numbers_on_the_way_lose_digits(kernel, expect):
    given = dict(x="f32[64]", y="f32[64]:out")
    assert verdict(kernel, expect, given) == "pass"
    assert verdict(lambda x: kernel(x) * f32(1.001), expect, given) != "pass"


def test_flushed_numbers_lose_all_their_digits():
    def kernel(x):
        small = x * f32(2e-38)
        return np.where(np.abs(small) < 2.0**-126, 0, small) * f32(5e37)

    given = dict(x="f32[64]", y="f32[64]:out")
    for arithmetic, found in ((Arithmetic(flushes=True), "pass"), (Arithmetic(), "random")):
        assert verdict(kernel, "x * 2e-38 * 5e37", given, arithmetic=arithmetic) == found


FAST = "mul.f32 %f2, %f1, 0f3FB8AA3B;\nex2.approx.f32 %f3, %f2;\n"
REDUCED = "mul.f32 %f9, %f8, %f7;\nfma.rn.f32 %f2, %f1, 0f32A57060, %f4;\nex2.approx.ftz.f32 %f3, %f2;\n"


@pytest.mark.parametrize("expect", ["exp(x)", "sigmoid(x)", "silu(x)"])
def test_fast_powers_of_large_numbers_are_further_off(expect):
    given = dict(x="f32[64]:-80..-70", y="f32[64]:out")

    def kernel(x):
        power = np.exp(x.astype(float)) * (1 + 1.1 * np.abs(x) * 2.0**-23)
        return power * x if expect == "silu(x)" else power

    fast, reduced = (arithmetic_of([text]) for text in (FAST, REDUCED))
    assert verdict(kernel, expect, given, arithmetic=fast) == "pass"
    assert verdict(kernel, expect, given, arithmetic=reduced) == "random"


PTX = """\
.visible .entry k() {
  { fma.rn.f16x2 %r1, %r2, %r3, %r4; }
  mov.b32 %r4, %r1;
  @%p1 mul.bf16 %rs1, %rs2, %rs3;
  { ex2.approx.ftz.f32 %f1, %f2; }
  mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}, {%r1}, {%r2}, {%f1};
}
"""


def test_the_ptx_says_what_a_kernel_computes_with():
    found = arithmetic_of([PTX])
    assert (found.added, found.multiplied) == ({"f16"}, {"f16", "bf16"})
    once = arithmetic_of([PTX.replace("mov.b32 %r4, %r1", "mov.b32 %r5, %r1")])
    assert not once.added  # a bias
    chained = "".join(f"add.f16 %rs{k + 1}, %rs{k}, %rs90;\n" for k in range(6))
    assert arithmetic_of([chained]).added == {"f16"}
    assert found.tf32 and found.tensor and found.flushes
    assert arithmetic_of(["cvt.f32.f16 %f1, %rs1;\nadd.f32 %f1, %f1, %f2;\n"]) == Arithmetic()


@pytest.mark.parametrize("text", [
    "broadcast_to(x, (100000, 100000))", "sort(broadcast_to(x, (1 << 20, 100)))",
    "concatenate([repeat(x, 1 << 19), repeat(x, 1 << 19)])",
    "reshape(x, (100, 1, 1, 1)) + reshape(x, (1, 100, 1, 1)) + reshape(x, (1, 1, 100, 1)) + x",
    "repeat(x, 1 << 22)", "outer(repeat(x, 1000), repeat(x, 1000))",
])  # fmt: skip
def test_expressions_make_no_huge_arrays(text):
    with pytest.raises(BadInput, match="is too large"):
        trials(text, dict(x="f32[100]", y="f32[100]:out"))
