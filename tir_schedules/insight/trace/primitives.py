"""What each schedule primitive does, in a sentence, and each annotation that the ladders use."""

from __future__ import annotations

PRIMITIVES = {
    "add_unit_loop": "Puts a loop of one iteration around a loop or block; later steps use it.",
    "annotate": "Leaves a note on a loop or block for a later pass of the lowering.",
    "bind": "Spreads a loop over the blocks of the grid or the threads of a block, one iteration each.",
    "blockize": "Makes one block of a loop nest, which can then be moved or replaced as a whole.",
    "cache_read": "Copies what a block reads into a nearer buffer; the block reads from there.",
    "cache_write": "Lets a block write to a nearer buffer, and copies it from there to where it belongs.",
    "compute_at": "Moves a producer under a loop of its consumer: it makes what one iteration needs.",
    "decompose_reduction": "Moves the zeroing of the accumulator into a block of its own, before the loop.",
    "fuse": "Makes one loop of nested ones, with the iterations in the same order.",
    "merge": "Makes one loop nest of several that stand side by side under a common loop.",
    "pad_einsum": (
        "Pads the problem to whole tiles: copies of inputs add zeros, that of the output drops the rest."
    ),
    "reindex": "Copies what a block reads or writes, laid out by the block's loops.",
    "reorder": "Changes the nesting of loops; what is computed stays the same.",
    "reverse_compute_at": "Moves a consumer under a loop of its producer: it takes what one iteration made.",
    "reverse_compute_inline": "Removes a block that only passes values on; its producer writes them itself.",
    "rfactor": "Splits a sum into partial sums, one for each iteration of a loop, and a sum of these.",
    "set_scope": "Places a buffer in a memory: global, shared, or local to a thread (registers).",
    "split": "Makes nested loops of one. Where the extent is no multiple of theirs, a guard is added.",
    "storage_align": "Pads a dimension of a buffer, so that rows begin in different banks of shared memory.",
    "tensorize": "Replaces a loop nest by an intrinsic that computes the same, such as one of tensor cores.",
    "transform_block_layout": "Replaces a block's loops by those of the given map.",
    "transform_layout": "Changes the layout of a buffer: each element moves to where the given map says.",
    "unroll": "Unrolls a loop: indices become constants, and array elements can be registers.",
    "vectorize": "Makes one access of neighbouring elements, one for each iteration, 16 bytes at most.",
}

ANNOTATIONS = {
    "disable_unroll": "Keeps a loop a loop: `#pragma unroll 1` in the CUDA.",
    "double_buffer_scope": "Doubles a buffer: one half is filled while the other is read.",
    "permuted_layout": (
        "Lets the lowering apply an XOR swizzle to the 16-byte pieces of rows in shared memory, against bank"
        " conflicts."
    ),
    "pragma_unroll": "Asks the compiler to unroll the loop so many times: `#pragma unroll` in the CUDA.",
    "software_pipeline_async_stages": "Names the pipeline stages whose copies are asynchronous: cp.async.",
    "software_pipeline_order": (
        "Orders the statements in an iteration of the loop. From here on the loop is a pipeline."
    ),
    "software_pipeline_stage": (
        "Assigns each statement of a loop to a pipeline stage; takes effect with the order."
    ),
    "tir_schedules.copies_first": "Leaves the copies of a later tile in front of the compute.",
    "tir_schedules.last_block": "Fuses two kernels: the last block to finish executes the next loop nest.",
    "tir_schedules.loop_peeling": (
        "Peels the last iteration off a loop, with the guard at the edge of K that only it needs."
    ),
    "tir_schedules.loop_unswitching": (
        "Unswitches a loop: guards that do not depend on its variable move in front of it."
    ),
    "tir_schedules.mbarrier_pipeline": (
        "Gives each stage of a pipeline an mbarrier, which tells when the stage is full."
    ),
    "tir_schedules.persistent_kernel": (
        "Makes the kernel persistent: about as many blocks as SMs, each of which computes tile after tile."
    ),
    "tir_schedules.serpentine_loops": (
        "Runs a loop backwards in every odd iteration of a loop around it: 1 is the next, 2 the one around"
        " that."
    ),
    "tir_schedules.shift_edge_tiles": (
        "Shifts the last tile inwards, so that it ends with the matrix: no guard is needed per row."
    ),
    "tir_schedules.threadblock_swizzle": (
        "Threadblock swizzle: groups so many columns of blocks; excess blocks of the last group exit at once."
    ),
    "tir_schedules.tma_prefetch": (
        "TMA prefetch: one thread issues the copies of later K tiles into stages, and all threads multiply."
    ),
    "tir_schedules.unroll_stages": (
        "Unrolls the loop by the stages of its multistage buffer, so that the index of each stage is a"
        " constant."
    ),
    "tir_schedules.warp_specialization": (
        "Specializes warpgroups: a producer copies K tiles into stages, consumers multiply them."
    ),
    "tir_schedules.wrap_edge_tiles": (
        "Wraps rows beyond the last around to the first: the copy of an edge tile needs no guard per row."
    ),
    "tirx.manifest_shared_memory_local_stage": (
        "Splits a copy in two: from global memory to registers, from there to shared memory."
    ),
}


def sentence(primitive: str, annotation: str = "") -> str:
    """What a primitive does; of `annotate`, what the annotation asks for. Empty for unknown primitives."""
    return ANNOTATIONS.get(annotation) or PRIMITIVES.get(primitive, "")
