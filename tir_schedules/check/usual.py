"""`--as sgemm`: the parameters of a kernel that computes the same as a ladder, by any names, with the
ladder's inputs, results and tolerance.

Pointers are told apart by `const`, by their names, or else by their order, A, B, C; extents by their names,
or else by their order, M, N, K. A single extent is that of square matrices. C = alpha A B + beta C where a
kernel takes alpha and beta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from tir_schedules.check.arguments import INOUT, OUT, Argument, Given, make_argument, sampled_places
from tir_schedules.check.expecting import Truth
from tir_schedules.check.expressions import Asked
from tir_schedules.check.target import Parameter, Target
from tir_schedules.check.types import FLOATS, NUMPY_NAMES, Arithmetic
from tir_schedules.errors import BadInput
from tir_schedules.ladders.known import workload_class
from tir_schedules.model.verify import Mismatch, compare
from tir_schedules.model.workload import Workload
from tir_schedules.workloads import array_of
from tir_schedules.workloads.drawing import EXACT
from tir_schedules.workloads.rounding import MANTISSA, UNIT
from tir_schedules.workloads.split_gemm import FORMS

ALPHA, BETA = 2, 3
"""What kernels that take them are given: whole numbers, so that what is exact stays so."""

TF32_WHOLE = 2.0**11
"""TF32 has whole numbers up to this."""

TF32_CUT = 2.0**-9
"""What a product may be off by, as a share, whose factors have lost all but ten bits of their fractions."""

PARTS_CUT = max(FORMS[name].dropped for name in ("bf16x6", "fp16x3"))
"""The same of factors that are sums of parts of 16 bits. Products of the smallest parts are left out."""

MOST_PARTS = 12
"""Numbers whose sum is exact in float32, though each is two to three times all before it together."""

LAYOUT = {"sgemm": "nn", "hgemm": "nt"}
"""How B is stored where nothing else is said."""

LEADING = {"lda": "K", "ldb": "N", "ldc": "N"}
Trials = list[tuple[str, dict[str, Argument], dict[str, Truth]]]


@dataclass(frozen=True)
class Usual:
    """A ladder, and the shape: (M, N, K), or (N,) of reduce. layout: of B; without it, nt of hgemm and nn of
    sgemm. accumulate: format of hgemm's sums; without it, that of C where tensor cores add up in that, else
    float32. Raises BadInput for what the ladder does not have."""

    ladder: str
    shape: tuple[int, ...]
    layout: str = ""
    accumulate: str = ""

    def __post_init__(self) -> None:
        if self.layout and self.ladder == "reduce":
            raise BadInput("--layout is for --as sgemm and hgemm: a sum has no B")
        if self.accumulate and self.ladder != "hgemm":
            raise BadInput("--accumulate is for --as hgemm: the others have one format of sums")

    @property
    def transposed(self) -> bool:
        """Whether B is stored as N x K."""
        return (self.layout or LAYOUT[self.ladder]) == "nt"

    @property
    def sizes(self) -> dict[str, int]:
        """Names for `--grid` and the like."""
        return dict(zip("MNK" if len(self.shape) == 3 else "N", self.shape))


@dataclass(frozen=True)
class TotalTruth(Truth):
    """A sum, which all elements of an output add up to: of one block each, or of all in the first."""

    def mismatch(self, name: str, got: np.ndarray) -> Mismatch | None:
        whole = got.dtype.kind == "i"
        total = got.sum(dtype=np.int64 if whole else np.float64, keepdims=True)
        return compare(
            name, total.astype(got.dtype) if whole else total, self.value, self.allowed, "should be"
        )


@dataclass(frozen=True)
class PartsTruth(Truth):
    """Sums of parts of an array that has few numbers besides 0, each larger than all before it together: a
    sum says which of them are in it, and each is in one."""

    def mismatch(self, name: str, got: np.ndarray) -> Mismatch | None:
        numbers = sorted(map(int, self.value[self.value != 0]), reverse=True)
        parts, once = np.zeros_like(got), np.zeros_like(got)
        taken: set[int] = set()
        for at, value in enumerate(got.ravel().tolist()):
            rest = value if np.isfinite(value) else 0
            for number in numbers:
                if number <= rest:
                    rest -= number
                    parts.flat[at] += number
                    once.flat[at] += 0 if number in taken else number
                    taken.add(number)
        found = compare(name, got, parts, 0.0, "should be") or compare(name, got, once, 0.0, "should be")
        return found and replace(
            found, hint="the part of a sum that a block is for has to be right by itself"
        )


def usual_trials(
    usual: Usual,
    target: Target,
    asked: Asked,
    given: Sequence[Given],
    sizes: Mapping[str, Any],
    arithmetic: Arithmetic,
) -> tuple[dict[str, Argument], Trials]:
    """Numbers by the parameters' names, and for each kind of inputs the arrays and the truth. arithmetic:
    what the kernel computes with.

    BadInput, with the signature, for parameters that are not those of such a kernel.
    """
    own = {one.name: make_argument(one, sizes, "", Path("."), 0) for one in given if one.name}
    roles = (total_roles if usual.ladder == "reduce" else product_roles)(target, usual, set(own))
    numbers = {name: value for name, value in own.items() if value.array is None}
    for name in own.keys() - numbers.keys():
        raise BadInput(f"--as {usual.ladder} makes the arrays itself: leave out --arg {name}=")
    if usual.ladder == "reduce":
        return totals(usual, roles, asked, numbers)
    if usual.ladder == "hgemm" or not (arithmetic.tf32 or arithmetic.tensor):
        return products(usual, roles, numbers)
    return products(usual, roles, numbers, arithmetic.tf32, TF32_CUT if arithmetic.tf32 else PARTS_CUT)


def unknown(target: Target, usual: Usual, what: str) -> BadInput:
    like = (
        "kernel(X, Y, N)"
        if usual.ladder == "reduce"
        else "kernel(A, B, C, M, N, K) or (M, N, K, alpha, A, B, beta, C)"
    )
    return BadInput(
        f"--as {usual.ladder} takes {like}; {target.signature} {what}: say by --arg and --expect what it"
        " takes"
    )


def pointers(target: Target) -> list[Parameter]:
    return [
        one for one in target.parameters if one.type.pointer or (one.type.pointer is None and one.bytes == 8)
    ]


def product_roles(target: Target, usual: Usual, known: set[str]) -> dict[str, Parameter]:
    """A, B, C, M, N, K, alpha and beta -> the parameters that stand for them."""
    arrays = pointers(target)
    if len(arrays) != 3:
        raise unknown(target, usual, f"has {len(arrays)} pointers")
    writable = [one for one in arrays if not one.type.const]
    called = [one for one in arrays if last_letter(one.name) == "c"]
    c = writable[0] if len(writable) == 1 else called[0] if len(called) == 1 else arrays[2]
    a, b = (one for one in arrays if one is not c)
    if last_letter(a.name) == "b" and last_letter(b.name) == "a":
        a, b = b, a
    roles = {"A": a, "B": b, "C": c}
    rest = [one for one in target.parameters if one not in arrays and one.name not in known]
    reals = [one for one in rest if one.type.format in FLOATS or one.type.ptx in FLOATS or one.by_value]
    extents = [one for one in rest if one not in reals]
    if len(reals) > 2:
        raise unknown(target, usual, f"has {len(reals)} more numbers that are not whole")
    roles |= dict(zip(("alpha", "beta"), sorted(reals, key=lambda one: one.name.lower() == "beta")))
    named = {one.name.upper(): one for one in extents if one.name.upper() in ("M", "N", "K")}
    strides = {one.name.lower(): one for one in extents if one.name.lower() in LEADING}
    others = [one for one in extents if one not in named.values() and one not in strides.values()]
    if len(extents) == 1 and len(set(usual.shape)) == 1:
        return roles | {"M": extents[0]}
    if others and (named or len(others) != 3):
        raise unknown(target, usual, f"has a parameter `{others[0].text}`")
    return roles | named | strides | dict(zip("MNK", others))


def last_letter(name: str) -> str:
    """ "c" of C, d_C, matC and c_ptr."""
    return name.lower().removesuffix("_ptr").removesuffix("_d").removesuffix("_dev")[-1:]


def cut_to_tf32(inputs: dict[str, Any]) -> dict[str, Any]:
    """Whole numbers of A and B that TF32 has, in the place of larger ones."""
    return {**inputs, **{name: np.fmod(inputs[name], TF32_WHOLE) for name in ("A", "B")}}


def products(
    usual: Usual,
    roles: Mapping[str, Parameter],
    numbers: dict[str, Argument],
    tf32: bool = False,
    cut: float = 0,
) -> tuple[dict[str, Argument], Trials]:
    """tf32: whether tensor cores read A and B as TF32. cut: what a product may be off by, as a share."""
    m, n, k = usual.shape
    of_b = k if usual.transposed else n
    given = {"M": m, "N": n, "K": k, "lda": k, "ldb": of_b, "ldc": n, "alpha": ALPHA, "beta": BETA}
    for role, parameter in roles.items():
        if role in given:
            numbers.setdefault(parameter.name, Argument(given[role]))
    named = {one.name: one for one in roles.values()}

    def scale(name: str, otherwise: float) -> float:
        own = roles.get(name)
        return float(numbers[own.name].value if own else value_of(numbers, name, otherwise, named))

    alpha, beta = scale("alpha", 1), scale("beta", 0)
    adds = bool(beta) or "beta" in roles
    workload = product_workload(usual, roles)
    trials: Trials = []
    for kind, seed in workload.draws():
        inputs = workload.arguments(seed, np, kind)
        if tf32 and kind == EXACT:
            inputs = cut_to_tf32(inputs)
        allowed = workload.tolerance(inputs, kind)["C"]
        truth = workload.truth(inputs)["C"]
        if cut and kind != EXACT:
            b = inputs["B"].T if usual.transposed else inputs["B"]
            allowed = allowed + cut * (np.abs(inputs["A"]) @ np.abs(b))
        c = array_of(inputs, "C")
        if adds:
            c = np.random.default_rng(seed).integers(-8, 8, c.shape, endpoint=True).astype(c.dtype)
            sums = np.abs(alpha * truth) + np.abs(beta * c.astype(np.float64))
            truth = alpha * truth + beta * c.astype(np.float64)
            bits = MANTISSA[str(c.dtype)]
            eps = UNIT if c.dtype == np.float32 else 2.0 ** (1 - bits)
            within = (kind == EXACT) & (sums <= 2**bits)
            allowed = np.where(within, 0.0, abs(alpha) * np.asarray(allowed) + 4 * eps * sums)
        elif alpha != 1:
            truth, allowed = alpha * truth, abs(alpha) * np.asarray(allowed)
        output = Argument(c, INOUT if adds else OUT)
        arrays = {"A": Argument(inputs["A"]), "B": Argument(inputs["B"]), "C": output}
        mine = {roles[name].name: argument for name, argument in arrays.items()}
        trials.append((kind, mine, {roles["C"].name: Truth(truth, allowed)}))
    return numbers, trials


def value_of(
    numbers: Mapping[str, Argument], name: str, otherwise: float, roles: Mapping[str, Parameter]
) -> float:
    """A number that the user gives a parameter of that name."""
    found = [one.value for key, one in numbers.items() if key.lower() == name and key not in roles]
    return found[0] if found else otherwise


def product_workload(usual: Usual, roles: Mapping[str, Parameter]) -> Workload:
    made_of, layout = workload_class(usual.ladder), usual.layout or LAYOUT[usual.ladder]
    if usual.ladder == "sgemm":
        return made_of(*usual.shape, layout=layout)
    operands = "bfloat16" if roles["A"].type.format == "bf16" else "float16"
    output = NUMPY_NAMES.get(roles["C"].type.format or ("bf16" if operands == "bfloat16" else "f16"))
    if output is None:
        raise BadInput(f"--as hgemm: C is `{roles['C'].text}`; it can be half*, __nv_bfloat16* or float*")
    sums = usual.accumulate or ("float16" if output == operands == "float16" else "float32")
    try:
        return made_of(*usual.shape, layout, sums, operands, output)
    except BadInput as error:
        raise BadInput(f"--as hgemm, A is `{roles['A'].text}` and C `{roles['C'].text}`: {error}") from None


def total_roles(target: Target, usual: Usual, known: set[str]) -> dict[str, Parameter]:
    """X, Y and N -> the parameters that stand for them."""
    arrays = pointers(target)
    rest = [one for one in target.parameters if one not in arrays and one.name not in known]
    if len(arrays) != 2 or len(rest) > 1:
        raise unknown(target, usual, f"has {len(arrays)} pointers and {len(rest)} numbers")
    first, second = arrays
    if not first.type.const and second.type.const:
        first, second = second, first
    return {"X": first, "Y": second, **({"N": rest[0]} if rest else {})}


def totals(
    usual: Usual, roles: Mapping[str, Parameter], asked: Asked, numbers: dict[str, Argument]
) -> tuple[dict[str, Argument], Trials]:
    (n,) = usual.shape
    format = roles["X"].type.format or "f32"
    if format not in ("f32", "i32"):
        raise BadInput(f"--as reduce: X is `{roles['X'].text}`; it can be float* or int*")
    workload = workload_class("reduce")(n, "int32" if format == "i32" else "float32")
    if "N" in roles:
        numbers.setdefault(roles["N"].name, Argument(n))
    trials: Trials = []
    for kind, seed in workload.draws():
        inputs = workload.arguments(seed, np, kind)
        x = array_of(inputs, "X")
        y = np.zeros(int(np.prod(asked.grid)), x.dtype)
        truth = TotalTruth(workload.truth(inputs)["Y"], workload.tolerance(inputs, kind)["Y"])
        arrays = {roles["X"].name: Argument(x), roles["Y"].name: Argument(y, INOUT)}
        trials.append((kind, arrays, {roles["Y"].name: truth}))
    x, draw = np.zeros_like(x), np.random.default_rng(seed)
    for (at,) in sampled_places((n,), MOST_PARTS, draw):
        before = int(x.sum())
        x[at] = 2 * before + 1 + draw.integers(before + 2)
    arrays = {roles["X"].name: Argument(x), roles["Y"].name: Argument(np.zeros_like(y), INOUT)}
    trials.append(("few", arrays, {roles["Y"].name: PartsTruth(x, 0.0)}))
    return numbers, trials


def set_tolerance(trials: Trials, tolerance: float | None) -> Trials:
    """Trials with a tolerance of the user's, absolute and as a share of each value."""
    if tolerance is None:
        return trials
    return [
        (kind, arrays, {k: replace(t, allowed=tolerance * (1 + np.abs(t.value))) for k, t in truths.items()})
        for kind, arrays, truths in trials
    ]
