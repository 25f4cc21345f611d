"""Expressions of `--expect`: methods, torch's functions, and parameters named like words of Python."""

import numpy as np
import pytest

from tir_schedules.check.expecting import operand
from tir_schedules.check.expressions import evaluate, functions_in
from tir_schedules.check.functions import FUNCTIONS, compares, functions_of
from tir_schedules.check.types import plain, rounding_of, spread
from tir_schedules.errors import BadInput

draw = np.random.default_rng(5)
x, y, b = (draw.standard_normal(shape).astype(np.float32) for shape in ((4, 6), (6, 3), (2, 3, 4)))
v = draw.standard_normal(6).astype(np.float32)
NAMES = {"x": x, "y": y, "b": b, "v": v, "n": 6, "in": v, "lambda": 3, "None": v}
wide = x.astype(np.float64)


def value_of(text):
    """The value and its bound for a kernel in float32."""
    rounding = rounding_of("f32")
    operands = {name: operand(value, rounding, False) for name, value in NAMES.items()}
    found = evaluate(text, operands, functions_of(rounding), "it is")
    return np.asarray(plain(found)), spread(found) if hasattr(found, "error") else np.zeros(np.shape(found))


SAME = {
    "x.reshape(n,4)": "reshape(x, (6, 4))",
    "x.reshape(-1, n // 2)": "reshape(x, (8, 3))",
    "x.view(-1)": "ravel(x)",
    "x.flatten()": "ravel(x)",
    "x.sum(1)": "sum(x, axis=1)",
    "x.mean(-1, keepdims=True)": "mean(x, axis=-1, keepdims=True)",
    "x.mean(dim=-1, keepdim=True)": "mean(x, axis=-1, keepdims=True)",
    "x.max()": "max(x)",
    "x.max(1)": "amax(x, axis=1)",
    "np.max(x, 1)": "amax(x, axis=1)",
    "torch.max(v, in)": "maximum(v, in)",
    "x.clip(-1, 1)": "minimum(maximum(x, -1), 1)",
    "x.clamp(min=0)": "relu(x)",
    "v.cumsum()": "cumsum(v)",
    "x.dot(y)": "x @ y",
    "b.transpose(0,2,1)": "swapaxes(b, 1, 2)",
    "b.transpose(1,2)": "swapaxes(b, 1, 2)",
    "b.permute(2, 0, 1)": "transpose(b, (2, 0, 1))",
    "v.unsqueeze(0).expand(4, -1)": "0 * x + v[np.newaxis]".replace("np.newaxis", "None"),
    "x.astype(float)": "x",
    "ones((4, 6), dtype='int32') + x": "x + 1",
    "x.astype(np.float16).astype('f16')": "x.half()",
    "(100 * x).to(torch.int32)": "trunc(100 * x)",
    "torch.cat([v, in], dim=0)": "concatenate((v, in))",
    "[[1, 2], [3, 4]] @ [1, 1]": "array([3, 7])",
    "[sum(v), max(v)]": "stack((sum(v), max(v)))",
    "x.shape[1] * v + len(v) - x.size(1)": "6 * v + 6 - n",
    "v[::-1]": "flip(v)",
    "x[..., 1:n]": "x[:, 1:]",
    "torch.var(x, dim=1, unbiased=False)": "var(x, axis=1)",
    "norm(x, axis=1)": "sqrt(sum(x * x, axis=1))",
    "lambda * in + None": "3 * v + v",
}


@pytest.mark.parametrize("text", SAME)
def test_spellings_of_one_thing(text):
    value, error = value_of(text)
    other, bound = value_of(SAME[text])
    np.testing.assert_allclose(value, other, rtol=1e-15)
    assert value.shape == other.shape and np.all(error <= bound * 1.5 + 1e-30)
    numbers = {name: one.astype(float) if np.ndim(one) else one for name, one in NAMES.items()}
    np.testing.assert_allclose(np.asarray(evaluate(text, numbers, FUNCTIONS, "it is")), value, rtol=1e-12)


f32 = np.float32
exp = np.exp
off = x - x.mean(1, keepdims=True)
powers = exp(x - x.max(1, keepdims=True))
COMPUTED = {
    "torch.sigmoid(x)": (1 / (1 + exp(-wide)), 1 / (1 + exp(-x))),
    "F.silu(x)": (wide / (1 + exp(-wide)), x / (1 + exp(-x))),
    "F.gelu(x, approximate='tanh')": (
        0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3))),
        f32(0.5) * x * (f32(1) + np.tanh(f32(0.79788456) * (x + f32(0.044715) * x * x * x))),
    ),
    "F.softmax(x, dim=1)": (exp(wide) / exp(wide).sum(1)[:, None], powers / powers.sum(1)[:, None]),
    "logsumexp(x, -1)": (np.log(exp(wide).sum(1)), np.log(exp(x).sum(1))),
    "log_softmax(x, -1)": (wide - np.log(exp(wide).sum(1))[:, None], x - np.log(exp(x).sum(1))[:, None]),
    "rsqrt(x * x)": (1 / abs(wide), f32(1) / np.sqrt(x * x)),
    "F.layer_norm(x, (n,), v, in, 1e-5)": (
        (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * v + v,
        off / np.sqrt((off * off).mean(1, keepdims=True) + f32(1e-5)) * v + v,
    ),
    "interp(5 * abs(sin(v)), arange(n), v)": (
        np.interp(5 * abs(np.sin(v.astype(float))), np.arange(6), v.astype(float)),
        np.interp(f32(5) * abs(np.sin(v)), np.arange(6), v).astype(f32),
    ),
}


@pytest.mark.parametrize("text", COMPUTED)
def test_functions_and_their_bounds(text):
    right, in_float32 = COMPUTED[text]
    value, error = value_of(text)
    np.testing.assert_allclose(value, right, rtol=1e-12)
    assert in_float32.dtype == f32 and np.all(abs(in_float32 - value) <= error + 1e-30)
    assert np.all(error < 2e-5 * (1 + abs(value))) and np.any(error > 0)


LEFT, RIGHT = draw.standard_normal((2, 6, 6))
ALIKE = {"x": LEFT, "y": RIGHT, "b": draw.standard_normal((2, 3, 3)), "v": draw.standard_normal(6), "i": 1}
GIVEN = ["v", "x", "b", "v, v", "x, y", "y, v", "v, x", "b, b", "x, b", "v, i", "x, i", "b, i"]
OTHERWISE = {"max", "min", "atleast_2d", "unique", "roll", "rot90", "tile"}
"""Of two arguments: as C++ has max and min; atleast_2d and unique take one; the others want integers."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(name for name in FUNCTIONS if hasattr(np, name)))
def test_functions_of_numpy_do_what_numpy_does(name):
    """With what it takes for arguments that are not given. Squares, because other matrices would not fit a
    product that is transposed."""
    for given in GIVEN:
        if name in OTHERWISE and "," in given:
            continue
        try:
            right = getattr(np, name)(*(ALIKE[one] for one in given.split(", ")))
            found = evaluate(f"np.{name}({given})", ALIKE, FUNCTIONS, "it is")
        except (BadInput, TypeError, ValueError, IndexError):
            continue  # refused by one of them
        assert np.shape(found) == np.shape(right), given
        np.testing.assert_allclose(np.asarray(found, float), np.asarray(right, float), rtol=1e-12)


def test_functions_beyond_their_limits():
    for text, right in (("sigmoid(-1000 + 0 * v)", 0), ("silu(1000 + 0 * v)", 1000)):
        value, error = value_of(text)
        assert np.all(value == right) and np.all(error <= 0.01)


def test_rounding_to_a_format_moves_by_a_whole_step_where_a_sum_is_off():
    value, error = value_of("(v.sum() * 0 + 1 + 2**-11).astype(f16)")
    assert value in (1, 1 + 2.0**-10) and error >= 2.0**-10


def test_integers_beside_unsigned_ones_are_integers():
    rounding, u = rounding_of("f32"), np.array([2**63 + 5, 7], np.uint64)
    for text, right in {
        "u % 4": [1, 3],
        "(u & 12) ^ (u >> 61)": [0, 4],
        "where(u > 7, u, 0) // 3": [(2**63 + 5) // 3, 0],
        "u & -8": [2**63, 0],
    }.items():
        found = evaluate(text, {"u": operand(u, rounding, False)}, functions_of(rounding), "it is")
        assert found.value.tolist() == right and not np.any(found.error)


def test_methods_are_known_as_functions():
    assert functions_in("x.clamp(0).unsqueeze(1)") == {"clip", "expand_dims"} and compares("x.max(1)")


@pytest.mark.parametrize(
    "text, told",
    [
        ("torch.max(x, 1)", "write max(x, axis=...): torch's is a pair"),
        ("x.max(dim=1)", "write max(x, axis=...)"),
        ("x.var(dim=1)", "ddof=1"),
        ("F.leaky_relu(x)", "write where(x > 0, x, 0.01 * x)"),
        ("einsum('ij,jk->ik', x, y)", "write A @ B"),
        ("softmax(x)", "say along which axis: softmax(x, axis=-1)"),
        ("x.view(torch.int32)", "astype(...) converts"),
        ("x.astype(v)", "astype takes a type"),
        ("leaky_relu(x, 0.2)", "write where(x > 0, x, 0.2 * x)"),
        ("median(x, axis=1)", "write sort(x, axis=-1)[..., n // 2] for an odd n"),
        ("softplus(x)", "write logaddexp(x, 0)"),
        ("layer_norm(x)", "missing a required argument: 'shape'; it is layer_norm(array, shape, weight=None"),
        ("gelu(x, 1, 2)", "gelu: too many positional arguments; it is gelu(array, approximate='none')"),
        ("sum(x, foo=1)", "sum: got an unexpected keyword argument 'foo'; it is sum(array, axis=None"),
        ("full(3)", "full: missing a required argument: 'fill_value'"),
        ("concatenate(x, x)", "concatenate takes arrays in brackets: concatenate((x, y))"),
        ("x ^ 2", "^ takes integers and comparisons; a power is x**2"),
        ("~x", "~ takes integers and comparisons"),
        ("x << 1", "<< takes integers; of reals say x * 2**n"),
        ("x > 0 and x < 1", "say & between comparisons: (x > 0) & (x < 1)"),
        ("not x", "say x == 0"),
        ("torch.max(x, dim=1).values", ".values is not taken; leave it out, and name the axis"),
        ("np.fft.fft(x)", "np.fft is not taken; there are numpy's functions"),
        ("x.exp", "write it as a function, exp(...)"),
        ("x.T()", "leave the brackets out, x.T"),
        *(
            (f"{name}(x)", f"no function '{name}'; there are")
            for name in "cross dropout tensordot trace".split()
        ),
        ("x.sofmax(1)", "no function 'sofmax', did you mean 'softmax'?"),
        ("layer_norm(x, v)", "it is layer_norm(x, n, weight, bias, eps)"),
        ("2 * in in", "it is not an expression (invalid syntax); `in` in it is a parameter"),
    ],
)
def test_what_is_not_taken(text, told):
    with pytest.raises(BadInput) as error:
        value_of(text)
    assert told in str(error.value) and "\n" not in str(error.value)


KERNELS = """\
__global__ void k(const float *in, float *lambda, int is) {
  int i = threadIdx.x;
  if (i < is) lambda[i] = 2 * in[i];
}
__global__ void both(const float *as, const float *as_, float *pass) {
  pass[threadIdx.x] = as[threadIdx.x] - 2 * as_[threadIdx.x];
}
"""
K = "--kernel k --block 128 --let is=100"


@pytest.mark.parametrize(
    "options",
    [
        f"{K} --arg in=[is] --arg lambda=[is]:out --expect lambda=2*in",
        f"{K} --arg in_=[is] --arg lambda_=[is]:out --expect lambda_=in_*2",
        f"{K} --arg in_=[is] --arg lambda=[is]:out --expect lambda_[:is]=2*in",
        "--launch k[1,128](in_,lambda,is_) --let is_=100 --arg in=[100] --arg lambda_=[100]:out"
        " --expect lambda=2*in",
        "--kernel both --block 32 --arg as=[32] --arg as_=[32] --arg pass_=[32]:out --expect pass=as-2*as_",
    ],
)  # fmt: skip
def test_parameters_named_like_words_of_python(options, tool, tmp_path):
    path = tmp_path / "words.cu"
    path.write_text(KERNELS)
    code, out, err = tool("check", str(path), *options.split())
    assert (code, err) == (0, "") and "1 of 1 verified" in out
