"""TVM's lowering of a scheduled function, with this project's passes where its schedule asks for them.

A schedule asks by annotations, see `model/schedule.py`. The passes of TVM and their order are those of its
own s_tir pipeline (tvm/s_tir/pipeline.py of TVM 0.27) without the ones for other targets. A test holds the
two to the same CUDA.
"""

from __future__ import annotations

from typing import Any, Mapping, cast

import tvm_ffi
from tvm import IRModule, s_tir, tirx, transform

from tir_schedules.model import annotations
from tir_schedules.model.annotations import PREFIX
from tir_schedules.tir.passes import Unfit
from tir_schedules.tir.passes.barrier_before import barrier_before
from tir_schedules.tir.passes.barrier_elimination import barrier_elimination
from tir_schedules.tir.passes.copies_after_compute import copies_after_compute
from tir_schedules.tir.passes.copies_after_wait import copies_after_wait
from tir_schedules.tir.passes.diagonal_rows import diagonal_rows
from tir_schedules.tir.passes.divide_once import divide_once
from tir_schedules.tir.passes.l2_prefetch import l2_prefetch
from tir_schedules.tir.passes.last_block import last_block
from tir_schedules.tir.passes.loop_peeling import loop_peeling
from tir_schedules.tir.passes.loop_unswitching import loop_unswitching
from tir_schedules.tir.passes.mbarrier_pipeline import mbarrier_pipeline
from tir_schedules.tir.passes.persistent_kernel import persistent_kernel
from tir_schedules.tir.passes.prologue_wait import prologue_wait
from tir_schedules.tir.passes.rewriting import body_of
from tir_schedules.tir.passes.rotate_rows import rotate_rows
from tir_schedules.tir.passes.serpentine_grid import serpentine_grid
from tir_schedules.tir.passes.serpentine_loops import serpentine_loops
from tir_schedules.tir.passes.shift_edge_tiles import shift_edge_tiles
from tir_schedules.tir.passes.sink_waits import sink_waits
from tir_schedules.tir.passes.stream_k import unify_counters
from tir_schedules.tir.passes.stream_k_accumulate import stream_k_accumulate
from tir_schedules.tir.passes.tensor_maps import tensor_maps
from tir_schedules.tir.passes.threadblock_swizzle import threadblock_swizzle
from tir_schedules.tir.passes.tma_prefetch import tma_prefetch
from tir_schedules.tir.passes.uniform_warpgroups import uniform_warpgroups
from tir_schedules.tir.passes.unroll_drain import unroll_drain
from tir_schedules.tir.passes.unroll_stages import unroll_stages
from tir_schedules.tir.passes.warp_specialization import warp_specialization
from tir_schedules.tir.passes.wrap_edge_tiles import wrap_edge_tiles

UNSHARED = 4
"""Values of the annotation of a persistent kernel that shares no tiles."""

COPYING = {
    annotations.LOOP_PEELING,
    annotations.STREAM_K_ACCUMULATE,
    annotations.UNROLL_DRAIN,
    annotations.UNROLL_STAGES,
}
"""Passes that leave copies of a loop, whose variables need names of their own."""

OPTIONS: dict[str, dict[str, Any]] = {
    annotations.ASYNC_COPIES: {"tirx.use_async_copy": True},
    annotations.GUARD_HOISTING: {"s_tir.HoistIfThenElse": {"support_block_scope_hoisting": True}},
    annotations.BUFFERS_APART: {"tirx.disable_storage_rewrite": True},
}
"""Annotations -> options of TVM's lowering that they stand for."""


def annotations_of(module: IRModule) -> dict[str, Any]:
    """The annotations of this project on loops and blocks of a module, and the attributes of its functions ->
    the value of one of each."""
    found: dict[str, Any] = {}

    def look(node: Any) -> None:
        add(node.annotations)

    def add(named: Mapping[str, Any]) -> None:
        found.update({name: value for name, value in named.items() if name.startswith(PREFIX)})

    for function in getattr(module, "functions").values():
        add(function.attrs or {})
        tvm_ffi.structural_walk(body_of(function), [(tirx.For, look), (s_tir.SBlock, look)])
    return found


def options_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Options of TVM's lowering that annotations stand for."""
    return {name: value for each in asked for name, value in OPTIONS.get(each, {}).items()}


EARLY = (
    (annotations.ROTATE_ROWS, rotate_rows),
    (annotations.SHIFT_EDGE_TILES, shift_edge_tiles),
    (annotations.WRAP_EDGE_TILES, wrap_edge_tiles),
    (annotations.THREADBLOCK_SWIZZLE, threadblock_swizzle),
    (annotations.SERPENTINE_GRID, serpentine_grid),
    (annotations.MBARRIER_PIPELINE, mbarrier_pipeline),
    (annotations.TMA_PREFETCH, tma_prefetch),
    (annotations.PERSISTENT_KERNEL, persistent_kernel),
    (annotations.WARP_SPECIALIZATION, warp_specialization),
    (annotations.TENSOR_MAPS, tensor_maps),
    (annotations.BARRIER_BEFORE, barrier_before),
)
"""The passes that come before TVM's, in their order."""

TAKES = {
    annotations.ROTATE_ROWS: (
        "rotate_rows",
        "it takes a copy with one store to a matrix; lines divide the columns of a tile",
    ),
    annotations.SHIFT_EDGE_TILES: ("shift_edge_tiles", "it takes a padded copy, or a copy of a padded C"),
    annotations.WRAP_EDGE_TILES: ("wrap_edge_tiles", "it takes a copy that pad_einsum has padded"),
    annotations.THREADBLOCK_SWIZZLE: ("swizzle_threadblocks", "it takes a loop on blockIdx.x"),
    annotations.SERPENTINE_GRID: ("serpentine_grid", "it takes loops on blockIdx.y and blockIdx.z"),
    annotations.MBARRIER_PIPELINE: (
        "pipeline_by_mbarriers",
        "it takes a loop over K tiles, within threadIdx.y, in which boxes are copied and awaited",
    ),
    annotations.TMA_PREFETCH: (
        "prefetch_boxes",
        "it takes a loop over K tiles, within threadIdx.x, whose first statements copy boxes or pieces",
    ),
    annotations.PERSISTENT_KERNEL: (
        "make_persistent",
        "it takes a loop on blockIdx.y that contains only a loop on blockIdx.x, with threads in it",
    ),
    annotations.WARP_SPECIALIZATION: (
        "specialize_warps",
        "it takes a loop over K tiles, within threadIdx.y, in which boxes are copied and multiplied",
    ),
    annotations.TENSOR_MAPS: ("encode_tensor_maps", "it takes boxes of matrices whose extents are known"),
    annotations.BARRIER_BEFORE: ("synchronize_before", "it takes a loop that all threads of a block run"),
}
"""Early passes -> the primitive that asks for each, and what that takes."""

ALWAYS = (
    annotations.THREADBLOCK_SWIZZLE, annotations.MBARRIER_PIPELINE, annotations.TMA_PREFETCH,
    annotations.PERSISTENT_KERNEL, annotations.WARP_SPECIALIZATION,
)  # fmt: skip
"""Those that change every schedule that asks for them."""


def restructured(module: IRModule, asked: Mapping[str, Any]) -> IRModule:
    """The module after the early passes. Unfit where a schedule is not one that a pass takes."""
    for name, change in EARLY:
        if name not in asked:
            continue
        try:
            changed = cast(Any, change)(module)
        except Exception as error:
            raise Unfit(*TAKES[name]) from error
        if name in ALWAYS and tvm_ffi.structural_equal(module, changed):
            raise Unfit(*TAKES[name])
        module = changed
    return module


def pipeline(asked: Mapping[str, Any]) -> transform.Pass:
    """From a `restructured` function with its target to host and device functions, ready for code generation.

    asked: `annotations_of` its module.
    """
    config = transform.PassContext.current().config

    def chosen(name: str, *those: Any) -> list[Any]:
        return list(those) if name in asked else []

    def unless(option: str, *passes: Any) -> list[Any]:
        return [] if config.get(option, False) else list(passes)

    asynchronous = bool(config.get("tirx.use_async_copy", False))
    early = annotations.COPIES_BEFORE_BARRIERS in asked
    stream_k = len(asked.get(annotations.PERSISTENT_KERNEL, ())) > UNSHARED
    return transform.Sequential(
        [
            s_tir.transform.CanonicalizeLoop(),
            s_tir.transform.LowerCrossThreadReduction(),
            *chosen(annotations.LAST_BLOCK, last_block),
            s_tir.transform.LowerInitBlock(),
            s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
            s_tir.transform.ConvertBlocksToOpaque(),
            s_tir.transform.LiftThreadBinding(),
            s_tir.transform.ManifestSharedMemoryLocalStage(),
            s_tir.transform.CompactBufferAllocation(),
            *([unify_counters] if stream_k else []),
            s_tir.transform.LowerAutoCopy(),
            s_tir.transform.UnifyThreadBinding(),
            s_tir.transform.LowerMatchBuffer(),
            s_tir.transform.StmtSimplify(),
            *chosen(annotations.DIAGONAL_ROWS, diagonal_rows),
            s_tir.transform.InjectPermutedLayout(),
            s_tir.transform.AnnotateIrregularLoop(),
            s_tir.transform.InjectSoftwarePipeline(),
            *chosen(annotations.COPIES_AFTER_COMPUTE, copies_after_compute),
            *chosen(annotations.COPIES_AFTER_WAIT, copies_after_wait),
            *chosen(annotations.SINK_WAITS, sink_waits),
            s_tir.transform.TransformMmaBufferLayout(),
            s_tir.transform.LowerOpaqueBlock(),
            tirx.transform.FlattenBuffer(),
            tirx.transform.BF16ComputeLegalize(),
            tirx.transform.NarrowDataType(32),
            s_tir.transform.LoopPartition(),
            tirx.transform.VectorizeLoop(True),
            s_tir.transform.InjectVirtualThread(),
            s_tir.transform.InjectDoubleBuffer(),
            *unless("tirx.disable_storage_rewrite", tirx.transform.StorageRewrite()),
            s_tir.transform.HoistIfThenElse(),
            *chosen(annotations.LOOP_UNSWITCHING, loop_unswitching),
            *chosen(annotations.PROLOGUE_WAIT, prologue_wait),
            *chosen(annotations.STREAM_K_ACCUMULATE, stream_k_accumulate),
            *chosen(annotations.LOOP_PEELING, loop_peeling),
            *chosen(annotations.UNROLL_STAGES, unroll_stages),
            *chosen(annotations.UNROLL_DRAIN, unroll_drain),
            *([s_tir.transform.ConvertSSA()] if asynchronous or COPYING & {*asked} else []),
            *chosen(annotations.SERPENTINE_LOOPS, serpentine_loops),
            tirx.transform.UnrollLoop(),
            s_tir.transform.RenormalizeSplitPattern(),
            tirx.transform.StmtSimplify(),
            tirx.transform.RemoveNoOp(),
            s_tir.transform.RewriteUnsafeSelect(),
            *unless("tirx.disable_cse_tir", tirx.transform.CommonSubexprElim()),
            *chosen(annotations.PERSISTENT_KERNEL, divide_once),
            tirx.transform.VerifyMemory(),
            tirx.transform.AnnotateEntryFunc(),
            *([s_tir.transform.InjectPTXAsyncCopy()] if asynchronous and early else []),
            s_tir.transform.ThreadSync("shared"),
            s_tir.transform.ThreadSync("shared.dyn"),
            *chosen(annotations.BARRIER_ELIMINATION, barrier_elimination),
            s_tir.transform.ThreadSync("warp"),
            s_tir.transform.InferFragment(),
            s_tir.transform.LowerThreadAllreduce(),
            *([s_tir.transform.InjectPTXAsyncCopy()] if asynchronous and not early else []),
            *chosen(annotations.WARP_SPECIALIZATION, tirx.transform.LowerWarpMemory()),
            s_tir.transform.MergeSharedMemoryAllocations(),
            *chosen(annotations.WARP_SPECIALIZATION, uniform_warpgroups),
            *chosen(annotations.L2_PREFETCH, l2_prefetch),
            tirx.transform.SplitHostDevice(),
            tirx.transform.MakePackedAPI(),
            tirx.transform.BF16StorageLegalize(),
        ]
    )
