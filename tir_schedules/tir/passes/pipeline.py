"""TVM's lowering of a scheduled function, with this project's passes where a rung asks for them.

A rung names them in `Rung.passes`. The passes of TVM and their order are those of its own s_tir pipeline
(tvm/s_tir/pipeline.py of TVM 0.27) without the ones for other targets; a test holds the two to the same CUDA.
"""

from __future__ import annotations

from typing import Any, Sequence

from tvm import s_tir, tirx, transform

from tir_schedules.tir.passes.barrier_elimination import barrier_elimination
from tir_schedules.tir.passes.copies_after_compute import copies_after_compute
from tir_schedules.tir.passes.l2_prefetch import l2_prefetch
from tir_schedules.tir.passes.last_block import last_block
from tir_schedules.tir.passes.loop_peeling import loop_peeling
from tir_schedules.tir.passes.loop_unswitching import loop_unswitching
from tir_schedules.tir.passes.mbarrier_pipeline import mbarrier_pipeline
from tir_schedules.tir.passes.persistent_kernel import persistent_kernel
from tir_schedules.tir.passes.prologue_wait import prologue_wait
from tir_schedules.tir.passes.serpentine_grid import serpentine_grid
from tir_schedules.tir.passes.serpentine_loops import serpentine_loops
from tir_schedules.tir.passes.shift_edge_tiles import shift_edge_tiles
from tir_schedules.tir.passes.sink_waits import sink_waits
from tir_schedules.tir.passes.stream_k import unify_counters
from tir_schedules.tir.passes.stream_k_accumulate import stream_k_accumulate
from tir_schedules.tir.passes.tensor_maps import tensor_maps
from tir_schedules.tir.passes.threadblock_swizzle import threadblock_swizzle
from tir_schedules.tir.passes.tma_prefetch import tma_prefetch
from tir_schedules.tir.passes.unroll_drain import unroll_drain
from tir_schedules.tir.passes.unroll_stages import unroll_stages
from tir_schedules.tir.passes.warp_specialization import warp_specialization
from tir_schedules.tir.passes.wrap_edge_tiles import wrap_edge_tiles

NAMES = (
    "shift_edge_tiles",
    "wrap_edge_tiles",
    "threadblock_swizzle",
    "serpentine_grid",
    "mbarrier_pipeline",
    "tma_prefetch",
    "persistent_kernel",
    "stream_k",
    "warp_specialization",
    "tensor_maps",
    "last_block",
    "copies_after_compute",
    "sink_waits",
    "loop_unswitching",
    "prologue_wait",
    "stream_k_accumulate",
    "loop_peeling",
    "unroll_stages",
    "unroll_drain",
    "serpentine_loops",
    "copies_before_barriers",
    "barrier_elimination",
    "l2_prefetch",
    "dependent_launch",
)
"""What a rung may ask for, in the order in which it runs. Three of these are no passes of a module here:

- "stream_k" is what a kernel needs besides `persistent_kernel` where that shares tiles along K.
- "copies_before_barriers" runs TVM's InjectPTXAsyncCopy before ThreadSync.
- "dependent_launch" rewrites the printed CUDA, see compiler/dependent_launch.py.

ThreadSync puts a barrier between accesses to the same buffer, and does not tell the stages of a multistage
buffer apart. Once the copies are cp.async calls it does not see them, and only the barrier after each wait
remains. That is enough if the order of the pipeline's statements puts that barrier between the last read of a
stage and its refill.
"""


def pipeline(wanted: Sequence[str] = ()) -> transform.Pass:
    """From a scheduled function with its target to host and device functions, ready for code generation.

    wanted: those of NAMES that are to run; ValueError for another.
    """
    for name in wanted:
        if name not in NAMES:
            raise ValueError(f"there is no pass {name!r}; there is {', '.join(NAMES)}")
    config = transform.PassContext.current().config

    def chosen(name: str, *passes: Any) -> list[Any]:
        return list(passes) if name in wanted else []

    def unless(option: str, *passes: Any) -> list[Any]:
        return [] if config.get(option, False) else list(passes)

    asynchronous = bool(config.get("tirx.use_async_copy", False))
    early = "copies_before_barriers" in wanted
    return transform.Sequential(
        [
            *chosen("shift_edge_tiles", shift_edge_tiles),
            *chosen("wrap_edge_tiles", wrap_edge_tiles),
            *chosen("threadblock_swizzle", threadblock_swizzle),
            *chosen("serpentine_grid", serpentine_grid),
            *chosen("mbarrier_pipeline", mbarrier_pipeline),
            *chosen("tma_prefetch", tma_prefetch),
            *chosen("persistent_kernel", persistent_kernel),
            *chosen("warp_specialization", warp_specialization),
            *chosen("tensor_maps", tensor_maps),
            s_tir.transform.CanonicalizeLoop(),
            s_tir.transform.LowerCrossThreadReduction(),
            *chosen("last_block", last_block),
            s_tir.transform.LowerInitBlock(),
            s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
            s_tir.transform.ConvertBlocksToOpaque(),
            s_tir.transform.LiftThreadBinding(),
            s_tir.transform.ManifestSharedMemoryLocalStage(),
            s_tir.transform.CompactBufferAllocation(),
            *chosen("stream_k", unify_counters),
            s_tir.transform.LowerAutoCopy(),
            s_tir.transform.UnifyThreadBinding(),
            s_tir.transform.LowerMatchBuffer(),
            s_tir.transform.StmtSimplify(),
            s_tir.transform.InjectPermutedLayout(),
            s_tir.transform.AnnotateIrregularLoop(),
            s_tir.transform.InjectSoftwarePipeline(),
            *chosen("copies_after_compute", copies_after_compute),
            *chosen("sink_waits", sink_waits),
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
            *chosen("loop_unswitching", loop_unswitching),
            *chosen("prologue_wait", prologue_wait),
            *chosen("stream_k_accumulate", stream_k_accumulate),
            *chosen("loop_peeling", loop_peeling),
            *chosen("unroll_stages", unroll_stages),
            *chosen("unroll_drain", unroll_drain),
            *(
                [s_tir.transform.ConvertSSA()]
                if asynchronous or {"loop_peeling", "unroll_stages"} & {*wanted}
                else []
            ),
            *chosen("serpentine_loops", serpentine_loops),
            tirx.transform.UnrollLoop(),
            s_tir.transform.RenormalizeSplitPattern(),
            tirx.transform.StmtSimplify(),
            tirx.transform.RemoveNoOp(),
            s_tir.transform.RewriteUnsafeSelect(),
            *unless("tirx.disable_cse_tir", tirx.transform.CommonSubexprElim()),
            tirx.transform.VerifyMemory(),
            tirx.transform.AnnotateEntryFunc(),
            *([s_tir.transform.InjectPTXAsyncCopy()] if asynchronous and early else []),
            s_tir.transform.ThreadSync("shared"),
            s_tir.transform.ThreadSync("shared.dyn"),
            *chosen("barrier_elimination", barrier_elimination),
            s_tir.transform.ThreadSync("warp"),
            s_tir.transform.InferFragment(),
            s_tir.transform.LowerThreadAllreduce(),
            *([s_tir.transform.InjectPTXAsyncCopy()] if asynchronous and not early else []),
            *chosen("stream_k", tirx.transform.LowerWarpMemory()),
            s_tir.transform.MergeSharedMemoryAllocations(),
            *chosen("l2_prefetch", l2_prefetch),
            tirx.transform.SplitHostDevice(),
            tirx.transform.MakePackedAPI(),
            tirx.transform.BF16StorageLegalize(),
        ]
    )
