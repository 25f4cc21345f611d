"""Float32 products by tensor cores: parts of elements, products of parts, sums that are promoted."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from layers import layers
from test_sgemm_emitted import facts

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import BadInput
from tir_schedules.ladders.problems import Problem, check_job, workloads_of
from tir_schedules.ladders.registry import every_rung, find, find_one
from tir_schedules.ladders.sgemm import offered
from tir_schedules.ladders.sgemm.models import MODELS
from tir_schedules.ladders.sgemm.shapes import microseconds, misaligned
from tir_schedules.ladders.sgemm.split_parts import RUNG as SPLIT_PARTS
from tir_schedules.ladders.sgemm.split_products import grouped, groups_of, splits_of
from tir_schedules.ladders.sgemm.split_scaled import RUNG as SPLIT_SCALED
from tir_schedules.ladders.waves import MEMORY
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.execution import execute
from tir_schedules.run import launches, outcome_of
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.split_gemm import AS_ACCURATE, FORMS, SplitGemm, float_gemm
from tir_schedules.workloads.splitting import MOST, Splitting

ARCH = "sm_90a"
MAKERS = (lower, load_twin)
RECORDED = Path(__file__).parent / "emitted_split.json"
NAMES = ("tf32", "split_bf16", "promoted", "bf16x6", "bf16x6_mma", "fp16x3", "fp16x3_mma", "bf16x6_fused")
SPLIT = [rung for rung in every_rung("sgemm") if offered(rung)["products"] != ("float32",)]


def small(name, more=""):
    return find(f"sgemm/{name}:64x64{more}")[0]


def gemm_of(rung, *shape, layout="nn"):
    m, n, k = shape
    return SplitGemm(m, n, k, rung.config.products, layout=layout)


def result(rung, gemm, a, b, make=lower):
    """C of these A and B."""
    binaries = [compile_kernel(kernel) for kernel in launches(make, rung, gemm, ARCH)]
    given = gemm.arguments() | {"A": a.astype("float32"), "B": b.astype("float32")}
    return execute(CpuMachine(), gemm, binaries, given)[-1][1]["C"].astype("float64")


def fma_in_order(a, b):
    """C by FMA, which round once: so does the sum of an exact product in float64, but for ties."""
    found = np.zeros((len(a), b.shape[1]), "float32")
    for k in range(len(b)):
        found = (found + np.outer(a[:, k].astype("float64"), b[k])).astype("float32")
    return found.astype("float64")


def errors_of(c, a, b):
    """In units of |A| |B|."""
    a, b = a.astype("float64"), b.astype("float64")
    return np.abs(c - a @ b) / (np.abs(a) @ np.abs(b))


def error(c, a, b):
    """The largest of them."""
    return np.max(errors_of(c, a, b))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    "rung, form", [(SPLIT_PARTS, "bf16x6"), (SPLIT_PARTS, "tf32"), (SPLIT_SCALED, "fp16x3")]
)
@pytest.mark.parametrize(
    "m, n, k, depth, layout",
    [(37, 41, 70, 32, "nn"), (1, 1, 1, 64, "nn"), (9, 65, 300, 64, "nn"), (3, 9, 2116, 64, "nn")]
    + [(37, 41, 71, 32, "nt"), (3, 9, 2116, 64, "nt")],
)
def test_parts_are_what_is_left_rounded(rung, form, m, n, k, depth, layout, make):
    split = Splitting(m, n, k, form, depth, layout)
    binary, given = compile_kernel(make(rung, split, ARCH)), split.arguments()
    given["X"][0, 0], given["X_2"][0, 0], given["X_2"][-1] = 3.4e38, -3.4e38, 0
    done = CpuMachine(orders=2).run(binary, given, split.outputs)
    assert done.findings == () and "st.global.v4" in binary.ptx
    for name, expected in split.truth(given).items():
        assert np.array_equal(given[name], expected)


def test_parts_add_up():
    """Three of bfloat16 to every float32, two of float16 to 22 bits of those near the largest."""
    split = Splitting(50, 1, 64)
    x = split.arguments()["X"]
    x[0, :2] = np.finfo("float32").max, -np.finfo("float32").max
    parts = split.parts_of(x).astype("float64").reshape(50, 2, 3, 32)
    assert np.array_equal(parts.sum(2).reshape(50, 64), x) and np.abs(parts).max() == MOST
    scaled = Splitting(50, 1, 64, "fp16x3")
    rows = scaled.arguments()["X"] / scaled.scales_of(x)[:, None]
    left = rows - scaled.parts_of(rows).astype("float64").reshape(50, 2, 2, 32).sum(2).reshape(50, 64)
    assert np.all(np.abs(left) <= np.maximum(2.0**-22 * np.abs(rows), 2.0**-25))


SHAPES = [(129, 127, 65), (64, 3, 600), (1, 1, 1), (130, 66, 33)]


@layers("name, shape", [(name, shape) for name in NAMES for shape in SHAPES[:2]],
        [(name, shape) for name in NAMES for shape in SHAPES[2:]])  # fmt: skip
def test_small_tiles(name, shape):
    """Of any shape; schedule and twin agree bit for bit, whatever order warps and copies come in."""
    rung = small(name)
    gemm = gemm_of(rung, *shape)
    done = [
        outcome_of(launches(make, rung, gemm, ARCH), gemm, CpuMachine(warp_order=order, copies=copies))
        for make, order, copies in zip(
            (*MAKERS, lower), ("forward", "reverse", "reverse"), ("late", "early", "late")
        )
    ]
    assert [outcome.faults for outcome in done] == [()] * 3
    for one, other in zip(done[0].outputs, done[1].outputs):
        assert np.array_equal(one["C"], other["C"])


@layers("rung", SPLIT[:1] + SPLIT[-1:], SPLIT)
@pytest.mark.parametrize("make", MAKERS)
def test_every_configuration(rung, make):
    gemm = gemm_of(rung, 129, 200, 290)
    assert outcome_of(launches(make, rung, gemm, ARCH), gemm, CpuMachine()).faults == ()


@pytest.mark.parametrize(
    "more",
    [",programs=1", ",programs=2", ",bk=32,promote=96,stages=2", ",stages=2"]
    + [",bm=128,consumers=2,turns=1,stages=2", ",bm=192,consumers=3,turns=1,stages=2,promote=64"],
)
@pytest.mark.parametrize("make", MAKERS)
def test_tiles_and_parts_of_k_take_turns(more, make):
    """More tiles than programs, more K tiles than stages, sums promoted several times."""
    rung = small("bf16x6", more)
    gemm = gemm_of(rung, 130, 70, 200)
    assert outcome_of(launches(make, rung, gemm, ARCH), gemm, CpuMachine()).faults == ()


ALONG_K = [("64x64,splits=3", (70, 66, 290)), ("64x64,splits=9,programs=4", (130, 3, 200))]
MORE_ALONG_K = [
    ("64x64,splits=2,bk=32,promote=96,stages=2", (1, 129, 323)),
    ("128x128,splits=2", (130, 5, 65)),
    ("128x176,splits=3", (129, 353, 129)),
]


@layers("config, shape, layout", [(*case, "nn") for case in ALONG_K],
        [*((*case, "nt") for case in ALONG_K), *((*case, "nn") for case in MORE_ALONG_K)])  # fmt: skip
def test_blocks_share_a_tile_along_k(config, shape, layout):
    """Schedule and twin agree bit for bit, whatever order warps and copies come in."""
    (rung,) = find(f"sgemm/bf16x6:{config}")
    gemm = gemm_of(rung, *shape, layout=layout)
    orders = (lower, "forward", "late"), (load_twin, "reverse", "early"), (lower, "reverse", "late")
    done = [
        outcome_of(launches(make, rung, gemm, ARCH), gemm, CpuMachine(warp_order=order, copies=copies))
        for make, order, copies in orders
    ]
    assert [outcome.faults for outcome in done] == [()] * 3
    for one, other in zip(done[0].outputs, done[1].outputs, strict=True):
        assert np.array_equal(one["C"], other["C"])


def test_no_part_of_k_is_empty():
    """A twin knows only how many parts there are: it finds the same K tiles."""
    for promote, k, splits in product((64, 128, 256), range(1, 2000, 61), range(1, 34)):
        config = replace(small("bf16x6").config, promote=promote, splits=splits)
        gemm = SplitGemm(64, 64, k)
        found, (groups, each) = splits_of(gemm, config), groups_of(gemm, config)
        k_tiles = -(-k // config.bk)
        assert (found - 1) * groups * each < k_tiles <= found * groups * each and found <= splits
        assert grouped(-(-k_tiles // found), config) == (groups, each)


def test_few_tiles_are_shared_along_a_long_k():
    """Where SMs would have no tile. Not where all have some, and not where a part would have little of K."""
    rung = find_one("sgemm/bf16x6", "run")
    splits = {
        shape: rung.fitted(SplitGemm(*shape)).config.splits
        for shape in ((64, 64, 65536), (512, 512, 4096), (4096, 4096, 4096), (64, 64, 64), (1024, 1024, 128))
    }
    assert [count > 1 for count in splits.values()] == [True, True, False, False, False]
    assert splits[64, 64, 65536] > splits[512, 512, 4096]


PARTED = [("64x32,splits=3", (129, 127, 165)), ("64x64,splits=2", (17, 33, 100))]
WHOLE = [("64x16", (1, 1, 129)), ("128x64", (130, 68, 96)), ("32x32", (40, 7, 1))]
OTHERS = [("16x64,splits=2", (3, 100, 165)), *WHOLE]
LOW_RINGS = ("128x64,bk=16,splits=1", (129, 65, 30))
"""A tile of C, of floats, is larger than the stages of A, and than those of B."""

FUSED = [("64x128,splits=2", (65, 131, 100)), ("128x128", (130, 68, 96)), ("64x16,splits=3", (70, 1, 129))]
FUSED += [("64x64,bk=64", (63, 65, 190)), ("bn=96,wn=96", (1, 97, 33)), ("bm=128,bn=32,wn=32", (129, 31, 40))]


@layers(
    "name, config, shape, layout",
    [*((name, *case, "nn") for case in PARTED for name in ("bf16x6_mma", "bf16x6_fused"))]
    + [("bf16x6_mma", *PARTED[0], "nt"), ("fp16x3_mma", *PARTED[0], "nn"), ("fp16x3_mma", *LOW_RINGS, "nn")],
    [*(("bf16x6_mma", *case, layout) for case in OTHERS for layout in ("nn", "nt"))]
    + [("bf16x6_mma", *PARTED[1], "nt"), *(("fp16x3_mma", *case, "nt") for case in [PARTED[1], *OTHERS])]
    + [("bf16x6_fused", *case, layout) for case in FUSED for layout in ("nn", "nt")],
)
def test_edges_and_parts_of_k_of_mma(name, config, shape, layout):
    """Schedule and twin agree bit for bit, whatever order warps and copies come in."""
    (rung,) = find(f"sgemm/{name}:{config}")
    gemm = gemm_of(rung, *shape, layout=layout)
    done = [
        outcome_of(
            launches(make, rung, gemm, rung.arch or "sm_80"),
            gemm,
            CpuMachine(warp_order=order, copies=copies),
        )
        for make, order, copies in zip(
            (*MAKERS, lower), ("forward", "reverse", "reverse"), ("late", "early", "early")
        )
    ]
    assert [outcome.faults for outcome in done] == [()] * 3
    for one, *others in zip(*(outcome.outputs for outcome in done)):
        assert all(np.array_equal(one["C"], other["C"]) for other in others)


@pytest.mark.parametrize("name", ["bf16x6_mma", "bf16x6_fused", "fp16x3_mma"])
def test_shared_memory_is_what_the_launch_declares(name):
    """Also where a tile of C is larger than the stages in whose place it goes: `lower` compares."""
    (rung,) = find(f"sgemm/{name}")
    for shape in ((1001, 1001, 16), (129, 65, 30), (3000, 203, 64), (500, 2999, 700)):
        lower(rung, gemm_of(rung, *shape), rung.arch or "sm_80")


TURNED = [("bf16x6", (129, 127, 65)), ("fp16x3", (64, 3, 600)), ("bf16x6_mma", (129, 127, 65))]


@layers("name, shape", TURNED, [(name, shape) for name in NAMES for shape in [*SHAPES, (2, 3, 1), (3, 1, 2)]])
@pytest.mark.parametrize("make", MAKERS)
def test_b_in_rows_along_k_gives_the_same_bits(name, shape, make):
    """With a column of zeros, an infinity and a NaN in B."""
    rung, rng = small(name), np.random.default_rng(4)
    m, n, k = shape
    a, b = (rng.normal(size=size) * 2.0 ** rng.integers(-40, 40, size) for size in ((m, k), (k, n)))
    b[:, n // 2] = 0
    b[-1, 0], b[0, -1] = np.inf, np.nan
    one = result(rung, gemm_of(rung, *shape), a, b, make)
    other = result(rung, gemm_of(rung, *shape, layout="nt"), a, np.ascontiguousarray(b.T), make)
    assert np.array_equal(one, other, equal_nan=True)


def test_copies_behind_the_wait_are_not_too_early():
    """Of a tile that the wait leaves in flight, or copied to where warps still read, the machine says so."""
    (rung,) = find("sgemm/bf16x6_mma:64x64,stages=3,splits=1")
    gemm = gemm_of(rung, 64, 64, 160)
    (own,) = launches(lower, rung, gemm, "sm_80")
    wait, barrier = "async_wait_group_1();", "async_wait_group_1();\n    __syncthreads();"
    for found, changed in ((wait, "async_wait_group_2();"), (barrier, wait)):
        other = replace(own, source=own.source.replace(found, changed))
        assert other.source != own.source
        runs = [CpuMachine(warp_order=order, copies="late") for order in ("forward", "reverse")]
        assert any(outcome_of([other], gemm, machine).faults for machine in runs), found


@pytest.mark.parametrize("operand", [0, 1])
def test_each_k_tile_has_its_parts(operand):
    """A kernel that has another part in one of the six is wrong with exact inputs."""
    rung = small("promoted")
    gemm, config = gemm_of(rung, 64, 64, 64), rung.config
    *before, own = launches(lower, rung, gemm, ARCH)
    parts, digits = gemm.form.parts, config.digits(operand)
    for place, pair in enumerate(gemm.form.products):
        other = digits + ((pair[operand] + 1) % parts - pair[operand]) * parts**place
        changed = replace(own, source=own.source.replace(f"({digits} /", f"({other} /"))
        assert changed.source != own.source
        assert outcome_of([*before, changed], gemm, CpuMachine()).wrong, place


@pytest.mark.parametrize("name", ["tf32", "bf16x6", "fp16x3"])
def test_each_product_shows(name):
    """A kernel that leaves one out is wrong with exact inputs."""
    rung = small(name)
    gemm = gemm_of(rung, 64, 64, 64)
    *before, own = launches(lower, rung, gemm, ARCH)
    head, call = own.source.split("void multiply_parts_")[0], f"    multiply_64x64x{gemm.form.step}("
    lines = [line for line in own.source.splitlines() if line.startswith(call)]
    steps = rung.config.bk // gemm.form.step
    assert len(lines) == steps * len(gemm.form.products) and head
    for number in range(0, len(lines), steps):
        dropped = "\n".join(lines[number : number + steps])
        other = replace(own, source=own.source.replace(dropped, ""))
        assert other.source != own.source
        assert outcome_of([*before, other], gemm, CpuMachine()).wrong, lines[number]


@pytest.mark.parametrize(
    "found, changed",
    [
        ("FIRST[3] = {1, 0, 0}", "FIRST[3] = {0, 0, 0}"),
        ("SECOND[3] = {0, 1, 0}", "SECOND[3] = {0, 0, 0}"),
        ("p < 3", "p < 2"),
    ],
)
def test_each_product_of_fragments_shows(found, changed):
    rung = small("fp16x3_mma")
    gemm = gemm_of(rung, 64, 64, 64)
    kernels = launches(lower, rung, gemm, "sm_80")
    own = next(one for one in kernels if found in one.source and "FIRST[3]" in one.source)
    other = replace(own, source=own.source.replace(found, changed))
    assert outcome_of([other if one is own else one for one in kernels], gemm, CpuMachine()).wrong


def test_promotion_is_what_makes_it_accurate():
    """Positive terms: tensor cores cut each sum off in the same direction."""
    rng = np.random.default_rng(1)
    a, b = (rng.random(shape, "float32") for shape in ((16, 4096), (4096, 16)))
    errors = {}
    for name in NAMES:
        rung = small(name)
        gemm = gemm_of(rung, 16, 16, 4096)
        errors[name] = error(result(rung, gemm, a, b), a, b)
        assert errors[name] <= gemm.bound
    fma = error(fma_in_order(a, b), a, b)
    assert errors["bf16x6"] < fma < errors["split_bf16"] / 4 and errors["fp16x3"] < fma
    assert errors["tf32"] > errors["split_bf16"]


@pytest.mark.parametrize("name", ["bf16x6", "bf16x6_mma", "bf16x6_fused"])
@pytest.mark.parametrize("signed", [True, False], ids=["normal", "positive"])
def test_few_terms_are_as_accurate_as_fma(name, signed):
    """From so many on that `fastest` takes them, in the maximum and in the root mean square."""
    (rung,), rng, few = find(f"sgemm/{name}:64x64"), np.random.default_rng(1), AS_ACCURATE["bf16x6"]
    a, b = (rng.standard_normal(shape, "float32") for shape in ((127, few), (few, 125)))
    a, b = (a, b) if signed else (np.abs(a), np.abs(b))
    found = errors_of(result(rung, gemm_of(rung, 127, 125, few), a, b, load_twin), a, b)
    fma = errors_of(fma_in_order(a, b), a, b)
    assert np.max(found) < np.max(fma) and np.mean(found**2) < np.mean(fma**2)


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_any_size(name):
    """Rows of A from 2^-100 to 2^100 and columns of B the other way, one of each of zeros."""
    rung, rng = small(name), np.random.default_rng(2)
    gemm = gemm_of(rung, 21, 21, 70)
    sizes = 2.0 ** np.arange(-100, 101, 10)
    a, b = rng.normal(size=(21, 70)) * sizes[:, None], rng.normal(size=(70, 21)) / sizes
    a[3], b[:, 5] = 0, 0
    a, b = a.astype("float32"), b.astype("float32")
    c, exact = result(rung, gemm, a, b), a.astype("float64") @ b.astype("float64")
    allowed = gemm.rounding(a.astype("float64"), b.astype("float64"))
    inside = np.abs(exact) < 2.0**127
    normal = (np.abs(exact) > 2.0**-100) | (exact == 0)
    assert (np.abs(c - exact) <= allowed)[inside & normal].all() and inside.sum() > 220
    assert not c[3].any() and not c[:, 5].any()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_finite_stays_so(name):
    """In the rows and columns in which it is with FMA, and nowhere else."""
    rung, rng = small(name), np.random.default_rng(3)
    gemm = gemm_of(rung, 20, 20, 40)
    a, b = rng.normal(size=(20, 40)), rng.normal(size=(40, 20))
    a[2, 3], a[7, 39], b[5, 11] = np.inf, np.nan, -np.inf
    c = result(rung, gemm, a, b)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(np.isfinite(c), np.isfinite(a @ b))


def test_subnormal_elements_keep_what_bfloat16_holds():
    rung, tiny = small("bf16x6"), 2.0**-133
    a, b = np.full((8, 8), 3 * tiny), np.full((8, 8), 1.0)
    assert np.array_equal(result(rung, gemm_of(rung, 8, 8, 8), a, b), np.full((8, 8), 24 * tiny))


def test_it_is_asked_for():
    """A rung multiplies what it says, and `fastest` takes none of these unasked."""
    check_job(find_one("sgemm/bf16x6", "run"), float_gemm(8, 8, 8, "bf16x6"))
    with pytest.raises(BadInput, match="sgemm/naive multiplies float32, not bf16x6"):
        check_job(find_one("sgemm/naive", "run"), SplitGemm(8, 8, 8))
    with pytest.raises(BadInput, match="sgemm/bf16x6 multiplies bf16x6, not float32"):
        check_job(find_one("sgemm/bf16x6", "run"), Gemm(8, 8, 8))
    with pytest.raises(BadInput, match="products is 'tf64'; it can be tf32 or"):
        SplitGemm(8, 8, 8, "tf64")
    with pytest.raises(BadInput, match="sgemm/naive takes layout nn; nt is for sgemm/tf32, sgemm/split_bf16"):
        check_job(find_one("sgemm/naive", "run"), Gemm(8, 8, 8, layout="nt"))
    assert type(float_gemm(8, 8, 8)) is Gemm
    chosen, _ = find_one("sgemm/fastest", "run").settled(Gemm(4096, 4096, 4096), "sm_90a")
    assert offered(chosen)["products"] == ("float32",)


@pytest.mark.parametrize(
    "name, reason",
    [
        ("bf16x6:bk=16", "bk is 16: rows of 64 or 128 bytes"),
        ("bf16x6:promote=48", "promote is 48: a multiple of bk, 256 at most"),
        ("bf16x6:promote=512", "promote is 512: a multiple of bk, 256 at most"),
        ("split_bf16:promote=64", "promote is 64: 0, or take sgemm/bf16x6"),
        ("bf16x6:bn=256", "two sums of 64x256 do not fit"),
        ("bf16x6:bn=200", "bn must be a multiple of 16"),
        ("bf16x6:consumers=4", "for each of 1 to 3 consumers"),
        ("bf16x6:stages=17", "the ring has 2 to 16 stages"),
        ("bf16x6:splits=0", "splits is 0: 1 or more blocks share a tile"),
        ("bf16x6:group=0", "group is 0: rows of tiles in a stripe, 1 or more"),
        ("bf16x6:programs=0", "programs is 0: blocks of the grid, 1 or more"),
        ("bf16x6:stages=4", "bytes of shared memory"),
        ("bf16x6_mma:bk=24", "bk is 24: a multiple of 16, 256 at most"),
        ("bf16x6_mma:wm=24", "a warp's tile is 24x32: multiples of 16 rows and 8 columns"),
        ("bf16x6_mma:bm=128,wm=128", "two sums of 128x32 do not fit"),
        ("bf16x6_mma:bm=80", "80x64 must be 1 to 32 tiles of 32x32"),
        ("bf16x6_mma:stages=2", "stages is 2: use 3 or more"),
        ("bf16x6_mma:16x64,bk=16,wn=16", "do not share tiles of 64 and 256 float4 evenly"),
        ("bf16x6_mma:stages=20", "bytes of shared memory"),
        ("bf16x6_fused:bk=16", "bk is 16: rows of parts have 64 or 128 bytes, so it is 32 or 64"),
        ("bf16x6_fused:bn=128", "a warp's tile is 16x64: wm is 16, and wn is bn, 128"),
        ("bf16x6_fused:bm=96", "bm is 96: a multiple of 64, because wgmma"),
        ("bf16x6_fused:bm=0", "bm is 0: a multiple of 64, because wgmma"),
        ("bf16x6_fused:bm=256,bn=128,wn=128", "two sums of 16x128 for each of 16 warps do not fit"),
        ("bf16x6_fused:bn=160,wn=160", "use a smaller bm, or a bn of at most 128"),
        ("bf16x6_fused:bn=24,wn=24", "do not share tiles of 512 and 192 float4 evenly"),
        ("bf16x6_fused:bk=64,stages=6", "bytes of shared memory"),
        ("fp16x3_mma:bk=48", "bk is 48: 16, 32 or 64, which divide rows of parts"),
        ("fp16x3_mma:bk=0", "bk is 0: 16, 32 or 64"),
        ("fp16x3_mma:stages=20", "bytes of shared memory"),
    ],
)
def test_what_cannot_be_is_refused(name, reason):
    (rung,) = find(f"sgemm/{name}")
    assert rung.refuses
    assert reason in rung.refuses(gemm_of(rung, 64, 64, 64), rung.config)


@pytest.mark.parametrize("products", ["float32", "bf16x6", "fp16x3", "emulated"])
def test_layouts_differ_in_how_b_is_stored(products):
    one, other = (float_gemm(3, 5, 7, products, layout) for layout in ("nn", "nt"))
    assert str(other) == str(one).replace("3x5x7", "3x5x7 nt")
    for kind in ("exact", "real"):
        given, turned = one.arguments(1, kind=kind), other.arguments(1, kind=kind)
        assert np.array_equal(given["B"], turned["B"].T) and np.array_equal(given["A"], turned["A"])
        assert np.array_equal(one.truth(given)["C"], other.truth(turned)["C"])
        assert np.allclose(one.tolerance(given, kind)["C"], other.tolerance(turned, kind)["C"], rtol=1e-12)
    with pytest.raises(BadInput, match="layout is 'tn'; it can be nt or nn"):
        float_gemm(3, 5, 7, products, "tn")


def test_what_is_left_open_is_what_the_rung_has():
    """fastest is float32 where only the layout is asked for, and nn where only products are."""
    rung = find_one("sgemm/fastest", "run")
    assert workloads_of(rung, Problem("sgemm", (8, 8, 8), layout="nt")) == [Gemm(8, 8, 8, layout="nt")]
    assert workloads_of(rung, Problem("sgemm", (8, 8, 8), products="bf16x6")) == [SplitGemm(8, 8, 8)]
    with pytest.raises(BadInput, match="has no rung for 16x16x16 nt: .* use sgemm/bf16x6"):
        rung.settled(Gemm(16, 16, 16, layout="nt"), ARCH)
    emulated = float_gemm(64, 64, 64, "emulated", "nt")
    assert rung.settled(emulated, "sm_80")[1] == SplitGemm(64, 64, 64, layout="nt")


def test_three_products_are_by_mma_where_tiles_of_wgmma_are_large_or_missing():
    """Its time is that of the launch that splits A and B, and more."""
    rung = find_one("sgemm/fastest", "run")
    for shape, arch, name in [
        ((32, 32, 65536), ARCH, "fp16x3_mma"),
        ((4096, 4096, 4096), ARCH, "fp16x3"),
        ((4096, 4096, 4096), "sm_80", "fp16x3_mma"),
    ]:
        assert rung.settled(SplitGemm(*shape, "fp16x3"), arch)[0].name == name
    gemm = SplitGemm(20, 4096, 4096, "fp16x3")
    mma = find_one("sgemm/fp16x3_mma", "run").fitted(gemm)
    before, _ = mma.others(gemm)
    assert MODELS["fp16x3_mma"](gemm, mma).microseconds > before[0].workload.bytes / MEMORY > 30


def test_only_an_odd_c_costs_copies_of_parts_more():
    """Rows of parts are filled up, and those of a part of C are."""
    tile = small("fp16x3_mma").config
    assert not misaligned(SplitGemm(64, 64, 63, "fp16x3", layout="nt"), tile)
    odd, even = (SplitGemm(64, n, 4096, "fp16x3") for n in (63, 64))
    assert misaligned(odd, tile) == {"C": (64, 63)}
    alone, parted = (microseconds(odd, tile, parts) - microseconds(even, tile, parts) for parts in (1, 8))
    assert alone > 1 and abs(parted) < 0.1


def test_bounds_are_those_of_the_forms():
    """More than a sum in float32 errs for a few terms, less for many."""
    assert FORMS["bf16x6"].dropped == pytest.approx(2**-23, rel=0.05)
    assert FORMS["fp16x3"].dropped == pytest.approx(3 * 2**-22, rel=0.05)
    assert FORMS["tf32"].dropped == pytest.approx(2**-10, rel=0.05)
    bounds = [SplitGemm(1, 1, k).bound for k in (1, 256, 65536)]
    assert bounds == sorted(bounds) and bounds[1] < 5e-5 and bounds[2] < 8e-5
    assert SplitGemm(1, 1, 65536, "bf16x6_unpromoted").bound > 1e-2


PARTS_OF_K = find("sgemm/bf16x6:64x128,splits=2")
RECORDS = [(rung, (256, 256, 600), "nn") for rung in (*SPLIT, *PARTS_OF_K)]
BY_MMA = [(rung, (256, 256, 600), "nt") for rung in SPLIT if rung.name in ("bf16x6_mma", "bf16x6_fused")]


@layers("rung, shape, layout", [(SPLIT[0], (256, 256, 256), "nn")], RECORDS + BY_MMA)
@pytest.mark.parametrize("make", MAKERS, ids=["schedule", "twin"])
def test_split_rung_is_as_recorded(rung, shape, layout, make, golden):
    """If a launch before splits A and B, only that one depends on the layout."""
    gemm = gemm_of(rung, *shape, layout=layout)
    found = facts(make(rung, gemm, ARCH))
    golden(RECORDED, f"{rung.id} {gemm} {make.__name__}", found)
    assert found["spills"] == found["stack"] == 0
