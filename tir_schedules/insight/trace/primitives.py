"""What each schedule primitive does, in a sentence, and each annotation that the ladders use."""

from __future__ import annotations

PRIMITIVES = {
    "add_unit_loop": "Puts a loop of one turn around a loop or block, as a handle for what comes next.",
    "annotate": "Leaves a note on a loop or block, for a later pass of the lowering.",
    "bind": (
        "Spreads a loop over the blocks of the grid or the threads of a block: each has one value of its"
        " variable."
    ),
    "blockize": (
        "Makes a loop nest with all in it one block, which can then be moved and replaced as a whole."
    ),
    "cache_read": (
        "Adds a copy of what a block reads into a buffer nearer to it, and lets the block read from there."
    ),
    "cache_write": (
        "Lets a block write to a buffer nearer to it, and adds a copy from there to where it wrote before."
    ),
    "compute_at": (
        "Moves a producer under a loop of its consumer, there to make only what one turn of that loop needs."
    ),
    "decompose_reduction": (
        "Takes the zeroing of sums out of a reduction into a block of its own, before the loop."
    ),
    "fuse": "Makes one loop of several nested ones, with all their turns in the same order.",
    "merge": "Makes one loop nest of several that stand side by side under a common loop.",
    "pad_einsum": (
        "Makes the problem as large as whole tiles: copies of inputs fill with zeros, that of the output"
        " leaves out the rest."
    ),
    "reindex": (
        "Adds a copy of what a block reads or writes, laid out by the loops of the block instead of the"
        " matrix."
    ),
    "reorder": "Changes which loops are inside which; what is computed stays the same.",
    "reverse_compute_at": (
        "Moves a consumer under a loop of its producer, there to take away what one turn of that loop made."
    ),
    "reverse_compute_inline": (
        "Removes a block that only passes on what another made: the other writes it itself."
    ),
    "rfactor": "Splits a sum into partial sums, one for each turn of a loop, and a sum of those.",
    "set_scope": "Says in which memory a buffer lies: global, shared, or local to a thread (registers).",
    "split": (
        "Makes nested loops of one; the product of their extents is that of the loop, rounded up, with a"
        " guard if it has to be."
    ),
    "storage_align": "Pads a dimension of a buffer, so that rows begin in other banks of shared memory.",
    "tensorize": "Replaces a loop nest by an intrinsic that computes the same, such as one for tensor cores.",
    "transform_block_layout": (
        "Changes a block's iteration space: its loops are from now on those of the given map."
    ),
    "transform_layout": (
        "Changes how a buffer is laid out in memory: an element moves to where the given map says."
    ),
    "unroll": (
        "Marks a loop to be written out: no counting, and array elements that its turns name can be"
        " registers."
    ),
    "vectorize": "Makes one access of as many neighbouring elements as the loop has turns, 16 bytes at most.",
}

ANNOTATIONS = {
    "disable_unroll": "Keeps a loop a loop: `#pragma unroll 1` in the CUDA.",
    "double_buffer_scope": (
        "Gives a written buffer a second place, so that one can be filled while the other is read."
    ),
    "permuted_layout": (
        "Lets the lowering permute 16-byte pieces of the rows of shared memory, so that no bank is asked"
        " twice."
    ),
    "pragma_unroll": (
        "Asks the compiler to write out so many turns of the loop: `#pragma unroll` in the CUDA."
    ),
    "software_pipeline_async_stages": (
        "Names the pipeline stages whose copies do not make the thread wait: cp.async."
    ),
    "software_pipeline_order": (
        "Says in which order a turn of the loop has its statements. From here on the loop is a pipeline."
    ),
    "software_pipeline_stage": (
        "Says for each statement of a loop how many turns later it runs; takes effect with the order."
    ),
    "tir_schedules.ring": (
        "Writes out as many turns of the loop as its ring of buffers has places, so that each place is a"
        " constant."
    ),
    "tirx.manifest_shared_memory_local_stage": (
        "Splits a copy in two: from global memory to registers, from there to shared memory."
    ),
}


def sentence(primitive: str, annotation: str = "") -> str:
    """What a primitive does; of `annotate`, what the annotation asks for. Empty for one that no ladder
    uses."""
    return ANNOTATIONS.get(annotation) or PRIMITIVES.get(primitive, "")
