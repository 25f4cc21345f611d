"""The spaces of the tunable rungs: every valid point is lowered, compiled, and right."""

import pickle
import random
from dataclasses import replace
from itertools import islice, product

import pytest

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.ladders.registry import find_one
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import launches, outcome_of
from tir_schedules.tuning.space.points import key
from tir_schedules.tuning.space.tunable import DEFAULTS, SPACES, TUNABLE, check_fields, space_of
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

ARCH = "sm_80"
LARGE = {"sgemm": Gemm(4096, 4096, 4096), "hgemm": HalfGemm(4096, 4096, 4096), "reduce": Reduction(1 << 28)}
RAGGED = Gemm(509, 1021, 30)
"""Where sgemm/split_k has something to fill, and parts of K that are shorter than others."""
CONFIGS = [(space, rung) for space in SPACES.values() for rung in space.rung.variants()]

OWN_ARCH = "sm_90a"
HOPPER = [space for space in SPACES.values() if space.rung.arch == OWN_ARCH]

ALIKE = ("sgemm/serpentine", "hgemm/wgmma", "hgemm/wgmma_async", "hgemm/tma", "hgemm/warp_specialized")
"""Rungs whose points another one has, too, with as much or more that can go wrong."""
SEEDS = [(space, seed) for space in SPACES.values() for seed in range(1 if space.rung.id in ALIKE else 4)]

each_space = pytest.mark.parametrize("space", SPACES.values(), ids=lambda space: space.rung.id)


def arch_of(space):
    return space.rung.arch or ARCH


def large(space):
    return RAGGED if space.rung.id == "sgemm/split_k" else LARGE[space.rung.family]


def shapes(space, point):
    """Whole tiles, more of them along K than stages; ragged ones, with rows that 16-byte accesses can take or
    not.

    Reductions of as many elements as some blocks add in a turn, and of more or fewer.
    """
    if space.rung.family == "reduce":
        turn = 4 * point["block"] * point["unroll"]
        return [Reduction(4 * turn, "float32"), Reduction(3 * turn + 4), Reduction(turn - 1, "float32")]
    bm, bn, bk = point["bm"], point["bn"], point.get("bk", 64)
    turns = point.get("stages", 2) + 1
    if space.rung.id == "sgemm/stream_k":  # tiles that are shared
        return [Gemm(bm, 2 * bn, 32 * bk), Gemm(bm + 4, bn + 4, 64 * bk), Gemm(bm + 1, bn - 1, 32 * bk + 1)]
    if space.rung.family == "sgemm":
        return [Gemm(bm, bn, turns * bk), Gemm(bm + 4, bn + 4, bk + 4), Gemm(bm + 1, bn - 1, turns * bk + 1)]
    if space in HOPPER:  # rows of 16 bytes, as TMA takes them
        # Not every free tile takes a B that is stored KxN.
        layout = "nt" if space.rung.id == "hgemm/tile_shapes" else "nn"
        return [
            HalfGemm(bm, 2 * bn, turns * bk, "nt", "float16"),
            HalfGemm(bm + 8, bn + 8, bk + 8, layout, "float16"),
        ]
    wide = space.rung_at(point).config.accumulators[-1]
    kinds = ("nt", "float16"), ("nn", "float16"), ("nn", wide), ("nt", wide)
    extents = (
        (bm, 2 * bn, turns * bk),
        (bm, bn, 2 * bk),
        (bm + 8, bn + 8, bk + 8),
        (bm + 1, bn - 1, turns * bk + 1),
    )
    return [HalfGemm(*shape, *kind) for shape, kind in zip(extents, kinds)]


def check(space, point, workloads):
    """What the constraints promise."""
    rung = space.rung_at(point)
    for workload in workloads:
        outcome = outcome_of(launches(lower, rung, workload, arch_of(space)), workload, CpuMachine())
        assert outcome.faults == (), f"{point} on {workload}"


def work(point):
    if "unroll" in point:
        return point["block"] * point["unroll"]
    return point["bm"] * point["bn"] * point.get("bk", 64) * point.get("stages", 2)


@pytest.mark.parametrize(
    "space",
    [
        pytest.param(space, marks=pytest.mark.slow if space.rung.id in ALIKE else ())
        for space in SPACES.values()
    ],
    ids=lambda space: space.rung.id,
)
def test_points_drawn_are_right(space):
    """Two of those drawn that are quick to check, one on whole tiles and one on ragged ones. Of rungs of
    GEMM, which differ little, all but one have the latter alone."""
    rng = random.Random(1)
    drawn = sorted((space.sample(rng, large(space), arch_of(space)) for _ in range(40)), key=work)
    both = space.rung.id in ("sgemm/multistage", "reduce/vectorized")
    for point, shape in zip(drawn, (0, -1) if both else (-1,)):
        check(space, point, [shapes(space, point)[shape]])


@pytest.mark.slow
@pytest.mark.parametrize("space, seed", SEEDS, ids=[f"{space.rung.id}-{seed}" for space, seed in SEEDS])
def test_many_points_are_right_and_so_are_their_twins_where_they_compile(space, seed):
    point = space.sample(random.Random(seed), large(space), arch_of(space))
    workloads = shapes(space, point)
    check(space, point, workloads)
    twin = load_twin(space.rung_at(point), workloads[0], arch_of(space))
    try:
        compile_kernel(twin)
    except CheckFailed as error:
        assert "static assertion failed" in str(error)
    else:
        kernels = launches(load_twin, space.rung_at(point), workloads[0], arch_of(space))
        assert outcome_of(kernels, workloads[0], CpuMachine()).faults == ()


@pytest.mark.slow
@each_space
def test_what_is_launched_is_what_is_declared(space):
    """lower() compares, also that of the test above."""
    rng = random.Random(2)
    for _ in range(3):
        point = space.sample(rng, large(space), arch_of(space))
        lower(space.rung_at(point), shapes(space, point)[-1], arch_of(space))


@pytest.mark.parametrize("space, rung", CONFIGS, ids=[rung.id for _, rung in CONFIGS])
def test_configurations_chosen_by_hand_are_points(space, rung):
    point = space.point_of(rung.config)
    assert space.config(point) == rung.config
    assert space.refusal(point, large(space), "sm_90") == ""


@each_space
def test_a_worker_can_be_sent_a_point_and_takes_it_as_it_is(space):
    """A rung's choice among its configurations would take another one, and cannot be pickled."""
    rung = space.rung_at(space.point_of(space.rung.config))
    assert pickle.loads(pickle.dumps(rung)).fitted(large(space)) == rung


REFUSED = [
    ("sgemm/pipelined", {"bm": 192, "wm": 128}, "warp tiles must divide"),
    ("sgemm/pipelined", {"bm": 256, "bn": 256, "wm": 32, "wn": 32, "wmiter": 1}, "at most 1024 threads"),
    ("sgemm/pipelined", {"wmiter": 1}, "32 lanes"),
    ("sgemm/pipelined", {"wm": 128, "wn": 16, "wmiter": 1}, "32 lanes"),  # one lane along the columns
    (
        "sgemm/pipelined",
        {"wm": 128, "wn": 128, "wniter": 4, "wmiter": 4, "tm": 8},
        "accumulators and fragments of a thread do not fit",
    ),
    ("sgemm/pipelined", {"bm": 64, "bn": 192, "bk": 32}, "accumulators, fragments and copies"),
    ("sgemm/pipelined", {"bk": 32}, "48 KiB"),
    ("sgemm/multistage", {"stages": 2}, "stages must be 3"),
    ("sgemm/multistage", {"bk": 32, "rows_first": 1}, "does not fit into shared memory"),
    ("sgemm/multistage", {"bk": 16}, "instruction cache"),
    (
        "sgemm/multistage",
        {"bm": 32, "wm": 16, "wn": 16, "wmiter": 1, "wniter": 1, "tm": 2},
        "more threads than a tile of A has elements",
    ),
    ("sgemm/split_k", {"bk": 16}, "instruction cache"),
    (
        "sgemm/split_k",
        {"bm": 32, "wm": 8, "wniter": 1, "tm": 2, "stages": 6},
        "more threads than a tile of A",
    ),
    ("sgemm/split_k", {"asynchronous": 0, "bk": 16}, "48 KiB"),
    ("sgemm/split_k", {"asynchronous": 0, "rows_first": 1}, "stages and rows_first say nothing"),
    ("sgemm/split_k", {"splits": 16}, "K has another number of parts"),
    ("hgemm/mma_multistage", {"wm": 16}, "multiple of 32 both ways"),
    ("hgemm/mma_multistage", {"bk": 16}, "XOR swizzle"),
    ("hgemm/mma_multistage", {"bn": 192}, "powers of two"),
    ("hgemm/mma_multistage", {"stages": 2}, "stages must be 3"),
    ("hgemm/mma_multistage", {"wm": 128, "wn": 128}, "accumulator of a warp tile"),
    ("hgemm/mma_multistage", {"bm": 256, "bn": 256, "wm": 64, "wn": 32}, "accumulators and fragments"),
    ("hgemm/mma_multistage", {"stages": 4}, "does not fit into shared memory"),
    (
        "reduce/vectorized",
        {"most_blocks": 32768},
        "most_blocks does not limit the grid; 131072 means no limit",
    ),
    ("reduce/vectorized", {"most_blocks": 65536, "unroll": 4}, "does not limit the grid"),
    ("hgemm/wgmma", {"bm": 64}, "multiple of 64 for each of the consumers"),
    ("hgemm/tma", {"consumers": 1}, "the sums of a warpgroup"),
    ("hgemm/tma", {"stages": 2}, "the rung refuses it"),
    ("hgemm/warp_specialized", {"stages": 5}, "the stages do not fit into shared memory"),
    ("hgemm/tma_store", {"stages": 4, "boxes": 8}, "the rung refuses it"),
    ("hgemm/cluster", {"cluster": 4, "bn": 192}, "the rung refuses it"),
    ("hgemm/tile_shapes", {"cluster_m": 2, "cluster_n": 4}, "the rung refuses it"),
    ("hgemm/tile_shapes", {"stages": 8}, "the stages do not fit"),
    ("reduce/vectorized", {"most_blocks": 1 << 20}, "most_blocks can be 128, "),
]


@pytest.mark.parametrize(
    "name, change, reason", REFUSED, ids=[f"{name}-{reason}" for name, _, reason in REFUSED]
)
def test_a_point_that_cannot_be_is_refused_with_its_reason(name, change, reason):
    space = space_of(name)
    point = space.point_of(space.rung.config) | change
    workload = HalfGemm(4096, 4096, 4096, "nt", "float32") if space.rung.family == "hgemm" else large(space)
    assert reason in space.refusal(point, workload, arch_of(space))


@pytest.mark.parametrize("space", HOPPER, ids=lambda space: space.rung.id)
def test_points_are_what_a_hopper_rung_takes(space):
    """All that it takes, but for what is the same kernel as another point."""
    for gemm in (HalfGemm(512, 768, 256, "nt", "float32"), HalfGemm(4096, 4096, 512, "nn")):
        valid = set(map(key, space.points(gemm, OWN_ARCH)))
        for values in product(*space.fields.values()):
            point = dict(zip(space.fields, values))
            config = space.config(point)
            if config.bm % (64 * config.consumers) == 0:
                assert (key(point) in valid) == (space.rung.refuses(gemm, config) == ""), point


@each_space
def test_constraints_read_the_fields_they_name_and_no_others(space):
    """Else points() would leave out valid points or let invalid ones through."""
    rng, workload = random.Random(3), large(space)

    def anywhere():
        return {name: rng.choice(values) for name, values in space.fields.items()}

    for _ in range(200):
        point, other = anywhere(), anywhere()
        for constraint in space.constraints:
            assert set(constraint.reads) <= set(space.fields)
            same = other | {name: point[name] for name in constraint.reads}
            verdicts = {constraint.holds(space.config(p), workload, arch_of(space)) for p in (point, same)}
            assert len(verdicts) == 1, constraint.reason


@each_space
def test_hundreds_to_some_ten_thousand_points_are_valid_and_each_field_varies(space):
    """A reduction has three fields, and the Hopper rungs before the persistent one have three or four: these
    spaces are small enough to be tried out."""
    workload, arch = large(space), arch_of(space)
    fewest = {3: 20, 4: 80}.get(len(space.fields), 500) if space.rung.family != "reduce" else 200
    points = list(islice(space.points(workload, arch), 100_000))
    assert fewest < len(points) == space.size(workload, arch) < 100_000
    assert all(len({point[name] for point in points}) > 1 for name in space.fields)
    assert all(not space.refusal(point, workload, arch) for point in points[::97])


def test_rungs_without_a_space_are_bad_input():
    assert all(space_of(name).rung == find_one(name, "tune") for name in TUNABLE)
    tunable = "sgemm/pipelined, sgemm/serpentine, .*, hgemm/wgmma, .*, hgemm/tile_shapes, reduce/vectorized"
    with pytest.raises(BadInput, match=f"sgemm/naive cannot be tuned; {tunable} can"):
        space_of("sgemm/naive")


def test_each_family_tunes_its_own_rungs():
    assert list(DEFAULTS) == ["sgemm", "reduce", "hgemm"] and DEFAULTS["reduce"] == ("reduce/vectorized",)
    assert all(space_of(name).rung.family == family for family, names in DEFAULTS.items() for name in names)
    assert DEFAULTS["hgemm"] == ("hgemm/mma_multistage", "hgemm/tma_store", "hgemm/cluster")
    assert {name for names in DEFAULTS.values() for name in names} < set(TUNABLE)


@pytest.mark.parametrize("n", [1, 4099, 1 << 20, 1 << 25, (1 << 25) + 4, 2**31 - 2**17])
def test_no_two_points_of_a_reduction_launch_the_same_kernels_and_every_kernel_has_its_point(n):
    space, seen = space_of("reduce/vectorized"), {}
    for block in space.fields["block"]:
        for unroll in space.fields["unroll"]:
            for most_blocks in space.fields["most_blocks"]:
                point = {"block": block, "unroll": unroll, "most_blocks": most_blocks}
                grid = space.rung.launch(Reduction(n), space.config(point)).grid[0]
                seen.setdefault((block, unroll, grid), []).append(
                    not space.refusal(point, Reduction(n), ARCH)
                )
    assert all(valid.count(True) == 1 for valid in seen.values())


@pytest.mark.parametrize("gemm", [Gemm(509, 1021, 62), Gemm(64, 64, 16384), Gemm(32, 63, 64)])
def test_no_two_points_of_split_k_launch_the_same_kernels_and_every_kernel_has_its_point(gemm):
    space, seen = space_of("sgemm/split_k"), {}
    again = [one for one in space.constraints if one.again and "splits" in one.reads]
    names = again[0].reads
    for values in product(*(space.fields[name] for name in names)):
        config = replace(space.rung.config, **dict(zip(names, values)))
        launch = space.rung.launch(gemm, config)
        kernels = config.bm, config.bn, config.bk, config.asynchronous, launch
        seen.setdefault(kernels, []).append(all(one.holds(config, gemm, ARCH) for one in again))
    assert all(valid.count(True) <= 1 for valid in seen.values())
    assert all(any(valid) for (*_, launch), valid in seen.items() if launch.parts in space.fields["splits"])


def test_points_of_split_k_that_need_longer_indices_are_refused():
    space, thin = space_of("sgemm/split_k"), Gemm(2**26, 1, 16)
    point = space.point_of(space.rung.config) | {"splits": 2}
    assert not space.refusal(point, thin, ARCH)
    assert "2^31 partial sums" in space.refusal(point, Gemm(2**26, 17, 16), ARCH)


def test_splits_beyond_the_tiles_along_k_are_as_many_as_these():
    check_fields(find_one("sgemm/split_k:64x64,splits=100000", "run"), ARCH)
