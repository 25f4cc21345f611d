"""TVM's lowering of a scheduled function, with this project's passes where a rung asks for them.

A rung names them in `Rung.passes`. The passes of TVM and their order are those of its own s_tir pipeline
(tvm/s_tir/pipeline.py of TVM 0.27) without the ones for other targets; a test holds the two to the same CUDA.
"""

from __future__ import annotations

from typing import Any, Sequence

from tvm import s_tir, tirx, transform

from tir_schedules.tir.passes.added_tiles import added_tiles
from tir_schedules.tir.passes.boxes_ahead import boxes_ahead
from tir_schedules.tir.passes.copies_after_compute import copies_after_compute
from tir_schedules.tir.passes.guards_outside import guards_outside
from tir_schedules.tir.passes.last_block import last_block
from tir_schedules.tir.passes.last_turn import last_turn
from tir_schedules.tir.passes.late_waits import late_waits
from tir_schedules.tir.passes.one_barrier import one_barrier
from tir_schedules.tir.passes.partial_group import partial_group
from tir_schedules.tir.passes.persistent_tiles import persistent_tiles
from tir_schedules.tir.passes.prologue_wait import prologue_wait
from tir_schedules.tir.passes.ring_barriers import ring_barriers
from tir_schedules.tir.passes.serpentine import serpentine
from tir_schedules.tir.passes.shifted_edges import shifted_edges
from tir_schedules.tir.passes.streamed_tiles import same_counters
from tir_schedules.tir.passes.tensor_maps import tensor_maps
from tir_schedules.tir.passes.turning_products import turning_products
from tir_schedules.tir.passes.unroll_drain import unroll_drain
from tir_schedules.tir.passes.unroll_stages import unroll_stages
from tir_schedules.tir.passes.warp_roles import warp_roles
from tir_schedules.tir.passes.whole_lines import whole_lines
from tir_schedules.tir.passes.wrapped_edges import wrapped_edges

NAMES = (
    "shifted_edges",
    "wrapped_edges",
    "partial_group",
    "serpentine",
    "ring_barriers",
    "boxes_ahead",
    "persistent_tiles",
    "streamed_tiles",
    "warp_roles",
    "tensor_maps",
    "last_block",
    "copies_after_compute",
    "late_waits",
    "guards_outside",
    "prologue_wait",
    "added_tiles",
    "last_turn",
    "unroll_stages",
    "unroll_drain",
    "turning_products",
    "copies_before_barriers",
    "one_barrier",
    "whole_lines",
    "early_launch",
)
"""What a rung may ask for, in the order in which it runs. "copies_before_barriers" is no pass of ours: TVM's
InjectPTXAsyncCopy runs before ThreadSync. "streamed_tiles" is what a kernel needs besides whose tiles
`persistent_tiles` shares out slab by slab. "early_launch" is no pass over TIR: it is for the CUDA that is
printed, see compiler/early_launch.py.

ThreadSync puts a barrier between accesses to the same buffer and takes the stages of a multistage buffer for
one. Once the copies are cp.async calls it does not see them; what remains is the barrier after each wait.
That is enough if the order of the pipeline's statements puts that barrier between the last read of a stage
and its refill.
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
            *chosen("shifted_edges", shifted_edges),
            *chosen("wrapped_edges", wrapped_edges),
            *chosen("partial_group", partial_group),
            *chosen("serpentine", serpentine),
            *chosen("ring_barriers", ring_barriers),
            *chosen("boxes_ahead", boxes_ahead),
            *chosen("persistent_tiles", persistent_tiles),
            *chosen("warp_roles", warp_roles),
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
            *chosen("streamed_tiles", same_counters),
            s_tir.transform.LowerAutoCopy(),
            s_tir.transform.UnifyThreadBinding(),
            s_tir.transform.LowerMatchBuffer(),
            s_tir.transform.StmtSimplify(),
            s_tir.transform.InjectPermutedLayout(),
            s_tir.transform.AnnotateIrregularLoop(),
            s_tir.transform.InjectSoftwarePipeline(),
            *chosen("copies_after_compute", copies_after_compute),
            *chosen("late_waits", late_waits),
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
            *chosen("guards_outside", guards_outside),
            *chosen("prologue_wait", prologue_wait),
            *chosen("added_tiles", added_tiles),
            *chosen("last_turn", last_turn),
            *chosen("unroll_stages", unroll_stages),
            *chosen("unroll_drain", unroll_drain),
            *(
                [s_tir.transform.ConvertSSA()]
                if asynchronous or {"last_turn", "unroll_stages"} & {*wanted}
                else []
            ),
            *chosen("turning_products", turning_products),
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
            *chosen("one_barrier", one_barrier),
            s_tir.transform.ThreadSync("warp"),
            s_tir.transform.InferFragment(),
            s_tir.transform.LowerThreadAllreduce(),
            *([s_tir.transform.InjectPTXAsyncCopy()] if asynchronous and not early else []),
            *chosen("streamed_tiles", tirx.transform.LowerWarpMemory()),
            s_tir.transform.MergeSharedMemoryAllocations(),
            *chosen("whole_lines", whole_lines),
            tirx.transform.SplitHostDevice(),
            tirx.transform.MakePackedAPI(),
            tirx.transform.BF16StorageLegalize(),
        ]
    )
