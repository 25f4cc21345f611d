"""What a verdict covers: what is not judged is said, and what a right kernel does passes."""

import pytest

from tir_schedules import check
from tir_schedules.check.expressions import other_constants
from tir_schedules.errors import BadInput

COPIES = """\
__global__ void copies(const float *x, float *y, float *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * SCALE, z[i] = x[i];
}
"""
LAUNCHES = """\
__global__ void copy(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
int main() { float *x, *y; int n = 100; copy<<<(n + 31) / 32, 32>>>(x, y, n); }
"""
ELEMENTS = """\
#define T threadIdx.x
#define MOST 3.402823466e38f
__global__ void shows_infinity(const float *x, float *y) { y[T] = isnan(x[T]) ? 0 : x[T]; }
__global__ void finite(const float *x, float *y) { y[T] = isnan(x[T]) ? 0 : fminf(fmaxf(x[T], -MOST), MOST); }
__global__ void between(const float *x, float *y) { y[T] = x[T] + T * (1.f / 63); }
__global__ void saturates(const float *x, float *y) { y[T] = 2 * fminf(fmaxf(x[T], 0), 1); }
__global__ void truncates(const float *x, int *y) { y[T] = (int)x[T]; }
__global__ void positive(const float *x, int *y) { y[T] = x[T] > 0 && x[T] < 1e30f; }
"""


def of_copies(**changed):
    given = dict(
        grid=4, block=32, sizes={"n": 100}, arguments=dict.fromkeys("xyz", "f32[n]"), defines={"SCALE": 3},
        expect={"y": "3 * x"}, finite=True,
    )  # fmt: skip
    return check(COPIES, **(given | changed))


def test_what_is_not_judged_is_said():
    (told,) = of_copies().unshown
    assert "nothing says what z should be" in told
    told = of_copies(expect={"y[0]": "3 * x[0]", "y[90:]": "3 * x[90:]", "z": "x"})
    assert told.ok and told.unshown == ("89 of 100 elements of y are not judged",)
    assert of_copies(expect={"y[:9]": "3 * x[:9]", "y[9:]": "3 * x[9:]", "z": "x"}).unshown == ()


def test_nothing_is_verified_where_there_are_no_elements():
    told = of_copies(sizes={"n": 0})
    assert told.verdict == "no hazard" and "y has no elements: nothing was compared" in told.unshown


@pytest.mark.parametrize("outputs", ["y", ["y"]])
def test_an_output_that_is_a_text_holds_nothing(outputs):
    with pytest.raises(BadInput, match="holds nothing"):
        of_copies(outputs=outputs, expect={"y": "y"})


WRONG = {
    "outputs": (dict(outputs=["q"]), "outputs= names 'q': arguments have the names x, y, z"),
    "two tolerances": (dict(tolerance=(1e-3, 1e-3)), "it takes a number from 0 on"),
    "a tolerance of text": (dict(tolerance="x"), "it takes a number from 0 on"),
    "usual": (dict(usual="sgemm", expect=None), "it takes a ladder and its shape"),
    "one extent": (dict(usual=("sgemm", 3), expect=None), "it takes a ladder and its shape"),
    "text": (dict(expect={"y": "'3'"}), "it is text"),
    "dots": (dict(expect={"y": "..."}), "it is `...`"),
    "two sizes": (
        dict(usual=("sgemm", (4, 4, 4)), sizes={"M": 8}, expect=None), "M is 4 in mnk=, and 8 in sizes=",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_is_said(case):
    changed, message = WRONG[case]
    with pytest.raises(BadInput) as raised:
        of_copies(**changed)
    assert message in str(raised.value)


def test_a_grid_that_is_left_out_is_that_of_the_file():
    given = dict(arguments=dict.fromkeys("xy", "f32[100]"), sizes={"n": 100}, expect={"y": "x"}, finite=True)
    assert check(LAUNCHES, block=32, **given).ok
    assert check(LAUNCHES, grid=4, **given).ok


@pytest.mark.parametrize("text", ["layer_norm(x, n)", "F.layer_norm(x, (n,), w)"])
def test_constants_that_functions_have_are_constants(text):
    assert [*other_constants(text, 2)] == ["1e-05"]
    assert other_constants("layer_norm(x, n, eps=0.5)", 2) == {"0.5": "layer_norm(x, n, eps=1.0)"}


ELEMENTWISE = {
    "shows_infinity": ("nan_to_num(x)", "FAIL"),
    "finite": ("nan_to_num(x)", "pass"),
    "between": ("x + linspace(0, 1, 64)", "pass"),
    "saturates": ("interp(x, [0, 1], [0, 2])", "pass"),
    "truncates": ("trunc(x)", "pass"),
    "positive": ("x > 0", "FAIL"),
}


@pytest.mark.parametrize("kernel", ELEMENTWISE)
def test_special_numbers_are_judged_where_they_mean_one_thing(kernel):
    value, verdict = ELEMENTWISE[kernel]
    format = "i32" if kernel in ("truncates", "positive") else "f32"
    arguments = {"x": "f32[64]", "y": f"{format}[64]:out"}
    told = check(ELEMENTS, kernel, grid=1, block=64, arguments=arguments, expect={"y": value})
    assert told.verdict == verdict


def test_a_cast_of_infinity_is_not_judged():
    arguments = {"x": "f32[64]", "y": "i32[64]:out"}
    given = dict(grid=1, block=64, arguments=arguments)
    assert check(ELEMENTS, "truncates", **given, expect={"y": "x.astype(int32)"}).ok
    assert not check(ELEMENTS, "truncates", **given, expect={"y": "x.astype(int32) + 1"}).ok


def test_an_output_may_be_named_like_the_function_that_says_what_it_is():
    source = "__global__ void k(const float *x, float *mean) { mean[0] = (x[0] + x[1]) / 2; }\n"
    given = {"x": "f32[2]", "mean": "f32[1]:out"}
    assert check(source, block=1, arguments=given, expect={"mean": "mean(x)"}).ok
