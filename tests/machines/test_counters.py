"""The counters against those Nsight Compute recorded on a GPU: single accesses, and kernels of all ladders.

Left out are counters that Nsight Compute is known to give otherwise: those of the data pipe, and wavefronts
of copies under P0.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from counter_pack import COUNTED
from counter_probes import probes
from layers import every_pair
from ptx_kernels import launch, module

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.source_text import SourceText
from tir_schedules.compiler.twin import load_twin
from tir_schedules.insight.metrics.counting import metrics_of
from tir_schedules.insight.profile.cases import cubin_name
from tir_schedules.insight.profile.nsight import prediction
from tir_schedules.ladders.known import workload_class
from tir_schedules.ladders.registry import current, every_rung, find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.counters import METRICS
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.run import launches
from tir_schedules.workloads.gemm import Gemm

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
ARCH = "sm_90"
FILES = [EXPERIMENTS / "results" / f"counters_{gpu}.json" for gpu in ("h200", "h100")]
"""The later one has what changed since."""

RECORDED = [entry for file in FILES for entry in current(json.loads(file.read_text()))["kernels"]]
MEASURED = {entry["probe"]: entry["measured"] for entry in RECORDED if "probe" in entry}
PROBES = {probe.name: probe for probe in probes(ARCH)}
# The data pipe's own counters also count stalls of other traffic; those of the instrumented code are exact.
NOISY = "l1tex__data_pipe_lsu_wavefronts"
COPY_WAVEFRONTS = next(metric for metric in METRICS if "ldgsts" in metric)
STORE_WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum"


def counted(binary, arguments, outputs):
    counters = CpuMachine().run(binary, arguments, outputs, count=True).counters
    return {name: vars(access) for name, access in counters.accesses.items()}


def differences(predicted, measured, skip=()):
    figures = {
        metric: prediction({"predicted": predicted}, *METRICS[metric])
        for metric in METRICS
        if not metric.startswith(skip)
    }
    return {
        metric: (figure, measured[metric]) for metric, figure in figures.items() if figure != measured[metric]
    }


@pytest.mark.parametrize("kind", sorted({name.split(",")[0] for name in PROBES}))
def test_single_accesses_cost_what_the_gpu_counted(kind):
    """All patterns of one access. Wavefronts of cp.async are a model that misses some: they have a test of
    their own."""
    for name, probe in PROBES.items():
        if name.split(",")[0] == kind:
            predicted = counted(compile_kernel(probe.kernel), probe.arguments(), ("Y",))
            assert not differences(predicted, MEASURED[name], skip=(COPY_WAVEFRONTS,)), name


@pytest.mark.parametrize("size, least", [(4, 67), (8, 60), (16, 74)])
def test_wavefronts_of_cp_async_are_as_good_as_they_were(size, least):
    """All patterns of 16 bytes exactly, of fewer at least so many, and all where the source or the target is
    contiguous."""
    exact, inexact = 0, []
    for name, probe in PROBES.items():
        if name.startswith(f"cp_async_{size},"):
            predicted = counted(compile_kernel(probe.kernel), probe.arguments(), ("Y",))
            equal = predicted["shared_cp_async"]["cost"] == MEASURED[name][COPY_WAVEFRONTS]
            exact, inexact = exact + equal, inexact + [name] * (not equal)
    assert exact >= least and (size < 16 or not inexact)
    assert all(", to " in name and "to stride 1," not in name for name in inexact)


CHANGED = re.compile(
    r"(hgemm/split_k:(128x128|128x192|128x256|192x192)|sgemm/split_k:(128x128|128x16|32x32|64x32)) "
)
"""Kernels that write other parts of C, more of them, or in another order, since they were counted."""

KERNELS: dict[tuple, dict[int, dict]] = {}
for entry in RECORDED:
    if "measured" in entry and "workload" in entry:
        if not entry.get("launch"):  # a later one may be of the rung that ends the work
            key = (entry["label"], *entry["workload"].values())
        if not CHANGED.match(key[0]):
            KERNELS.setdefault(key, {})[entry.get("launch", 0)] = entry


ALIKE = re.compile(
    r"hgemm/(repacked|split_k):(\w+_(lines|registers|whole) |bm=)|hgemm/(tile_shapes|mma_multistage:64x64)"
    r"|sgemm/(tf32|split_bf16|promoted|bf16x6|fp16x3)"
    r"|sgemm/split_k:(24x|32x256|40x|48x|56x128|64x(96|256)|256x|80x128|96x)"
    r"|([sh]gemm/gemv:(4x1|narrow|few)|hgemm/gemv:1x16|hgemm/unaligned:64x64x2)"
)
"""Kernels that are not counted: at the shapes of COUNTED they are those of the configuration without it.
Those of hgemm/tile_shapes, of forms without a name, of mma_multistage:64x64, of split_k:56x128, of
new tiles of split_k, gemv and unaligned, and of products of parts no GPU has counted yet."""


def named(key):
    return " ".join(map(str, key))


WAITS = re.compile(r"ld\.(acquire|volatile\.global)")
"""Who waits for others asks as often as it takes."""
ASKED = [metric for metric in METRICS if "global_op_ld" in metric]

# What the kernels do between them, by those that are soonest counted: accesses of 4, 8 and 16 bytes, to one
# sector or many, with and without conflicts; fragments of mma and of wmma; copies of 4 and of 16 bytes; one
# launch and two; schedules and twins.
QUICK = {
    "sgemm/shared_tile (twin)",
    "sgemm/transposed (tir)",
    "sgemm/warp_tiling (twin)",
    "sgemm/multistage:32x32 (tir)",
    "reduce/interleaved (tir)",
    "reduce/shuffle (twin)",
    "reduce/vectorized (twin)",
    "hgemm/wmma_shared:article_004 (twin)",
    "hgemm/mma_xor_swizzle (tir)",
}


def thorough(keys):
    """Of HGEMM every two of rung, form, layout and formats."""
    halves = [key for key in keys if key[0].startswith("hgemm")]
    parts = {(*key[0].split(" "), *key[1:5], key[5:]): key for key in halves}
    chosen = {parts[case] for case in every_pair(list(parts))}
    return [key for key in keys if quick(key) or key not in halves or key in chosen]


def quick(key):
    """HGEMM is counted in four kinds."""
    return key[0] in QUICK and (key[0][0] != "h" or key[-2:] == ("nt", "float16"))


@pytest.mark.parametrize(
    "key",
    [key if quick(key) else pytest.param(key, marks=pytest.mark.slow) for key in thorough(KERNELS)],
    ids=named,
)
def test_every_kernel_costs_what_the_gpu_counted(key):
    """Exactly, where nvcc makes the binary that was measured; another release or computer may merge a load
    otherwise."""
    identity, origin = key[0].removesuffix(")").split(" (")
    (rung,) = find(identity)
    workload = workload_class(rung.family)(**KERNELS[key][0]["workload"])
    binaries = [
        compile_kernel(kernel)
        for kernel in launches(lower if origin == "tir" else load_twin, rung, workload, ARCH)
    ]
    for entry, found in zip(KERNELS[key].values(), metrics_of(binaries, workload), strict=True):
        same = entry["cubin"] == cubin_name(found.binary)
        predicted = {name: vars(access) for name, access in found.counters.accesses.items()}
        skip = (NOISY, COPY_WAVEFRONTS) if entry.get("copies_under_p0") else (NOISY,)
        if "stmatrix" in found.binary.ptx:  # the GPU's metric of stores leaves it out
            assert entry["measured"][STORE_WAVEFRONTS] == 0
            skip = (*skip, STORE_WAVEFRONTS)
        if WAITS.search(found.binary.ptx):
            asked = predicted.get("global_load", {"requests": 0})["requests"]
            assert all(asked <= entry["measured"][name] for name in ASKED)
            skip = (*skip, *ASKED)
        unlike = differences(predicted, entry["measured"], skip)
        assert not {
            name for name, (ours, theirs) in unlike.items() if same or abs(ours - theirs) > 0.02 * theirs
        }


def test_every_rung_and_twin_was_counted():
    ids = {rung.fitted(COUNTED[rung.family][0]).id for rung in every_rung()}
    labels = {f"{identity} ({origin})" for identity in ids for origin in ("tir", "twin")}
    left_out = {label for label in labels if ALIKE.match(label) or CHANGED.match(label)}
    assert labels - left_out <= {key[0] for key in KERNELS} <= labels
    assert {key[0] for key in KERNELS if quick(key)} == QUICK


def test_counters_add_up_over_lines():
    gemm = Gemm(64, 64, 64)
    binary = compile_kernel(load_twin(find("sgemm/shared_tile")[0], gemm, ARCH))
    counters = CpuMachine().run(binary, gemm.arguments(), gemm.outputs, count=True).counters
    for name, access in counters.accesses.items():
        parts = [line.accesses[name] for line in counters.lines if name in line.accesses]
        assert (
            sum(part.cost for part in parts) == access.cost
            and sum(part.requests for part in parts) == access.requests
        )
    assert sum(sum(line.mix.values()) for line in counters.lines) == counters.thread_instructions
    assert sum(counters.mix.values()) == counters.thread_instructions
    assert counters.mix["fp32"] == 64**3
    tile_line = next(line for line in counters.lines if "shared_load" in line.accesses)
    assert "tile_a" in SourceText(binary.kernel).line(tile_line.file, tile_line.line)
    assert counters.warp_instructions * 32 == counters.thread_instructions


def counters_of(body, threads=32):
    """Of a kernel whose registers are t (threadIdx.x), a, b, c, d and e."""
    body = f".shared .align 16 .b8 tile[1024]; .reg .b32 t, a, b, c, d, e; mov.u32 t, %tid.x; {body}"
    arguments = {"Y": np.zeros(32, np.uint32)}
    return launch(module("test", arguments, body), arguments, (), block=(threads, 1, 1), count=True).counters


def test_lanes_that_are_not_there_execute_nothing():
    counters = counters_of("add.u32 a, t, 1;", threads=40)
    assert counters.warp_instructions and counters.thread_instructions * 2 == counters.warp_instructions * 40


@pytest.mark.parametrize("kind, mix", [
    ("f16x2", "fp16"), ("bf16x2", "fp16"), ("f16", "fp16"), ("f32", "fp32"), ("f64", "fp64"), ("s32", "int"),
])  # fmt: skip
def test_arithmetic_is_counted_by_its_type(kind, mix):
    width = {"f64": 64, "f16": 16}.get(kind, 32)
    body = f".reg .b{width} x; mov.b{width} x, 0; " + f"max.{kind} x, x, x; " * 50
    assert max(counters_of(body).mix.items(), key=lambda item: item[1])[0] == mix


@pytest.mark.parametrize("stride, requests", [(4, 4), (8, 2), (16, 1)])
def test_loads_merge_as_far_as_their_base_is_aligned(stride, requests):
    """Four neighbours of 4 bytes, from a base that each thread computes."""
    body = (
        f"mov.u32 e, tile; mad.lo.u32 e, t, {stride}, e;\nld.shared.u32 a, [e];\n"
        "ld.shared.u32 b, [e+4];\nld.shared.u32 c, [e+8];\nld.shared.u32 d, [e+12];"
    )
    assert counters_of(body).accesses["shared_load"].requests == requests


@pytest.mark.parametrize("access, kind", [
    ("ld.u32 a, [p];", "load"), ("st.u32 [p], t;", "store"), ("atom.add.u32 a, [p], t;", "atomic"),
])  # fmt: skip
def test_an_address_without_a_space_counts_where_it_leads(access, kind):
    """Half of the lanes come to a word of a bank in shared memory, the others to a sector each in global."""
    body = (
        ".reg .b64 p, q; .reg .pred low;\nld.param.u64 q, [Y]; mov.u64 p, tile; cvta.shared.u64 p, p;"
        " setp.lt.u32 low, t, 16;\n"
        "@!low mov.u64 p, q; shl.b32 b, t, 5; @low shl.b32 b, t, 7; cvt.u64.u32 q, b; add.u64 p, p, q;\n"
        + access
    )
    arguments = {"Y": np.zeros(256, np.uint32)}
    body = f".shared .align 128 .b8 tile[2048]; .reg .b32 t, a, b; mov.u32 t, %tid.x;\n{body}"
    program = module("test", arguments, body)
    found = launch(program, arguments, ("Y",), block=(32, 1, 1), count=True).counters.accesses
    cost = {name: (each.requests, each.cost) for name, each in found.items()}
    assert cost == {f"shared_{kind}": (1, 16), f"global_{kind}": (1, 16)}


def test_an_address_of_the_cluster_counts_where_it_is_the_blocks_own():
    """Block 0 reads its own shared memory by an address of the cluster, and block 1 reads that of block 0."""
    body = (
        ".shared .align 128 .b8 tile[128]; .reg .b64 p; .reg .b32 a, zero;\nmov.u32 zero, 0; mov.u64 p, tile;"
        " cvta.shared.u64 p, p;\nmapa.u64 p, p, zero; barrier.cluster.arrive; barrier.cluster.wait;\n"
        "ld.u32 a, [p]; barrier.cluster.arrive; barrier.cluster.wait;"
    )
    arguments = {"Y": np.zeros(1, np.uint32)}
    text = module("test", arguments, body).replace("sm_80", "sm_90")
    kernel = Kernel("test", "", "test", ("Y",), (2, 1, 1), (32, 1, 1), "sm_90", 0, cluster=(2, 1, 1))
    binary = Binary(kernel, text, b"", Resources(0, 0))
    found = CpuMachine().run(binary, arguments, ("Y",), count=True).counters.accesses
    assert {name: (each.requests, each.cost) for name, each in found.items()} == {"shared_load": (1, 1)}


def test_loads_do_not_merge_across_a_store_that_may_lead_there():
    body = (
        "mov.u32 e, tile;\nld.shared.u32 a, [e];\nld.shared.u32 b, [e+4];\n{}ld.shared.u32 c, [e+8];\n"
        "ld.shared.u32 d, [e+12];"
    )
    store = ".reg .b64 p; ld.param.u64 p, [Y]; st.u32 [p], t;\n"
    requests = [counters_of(body.format(between)).accesses["shared_load"].requests for between in ("", store)]
    assert requests == [1, 2]
