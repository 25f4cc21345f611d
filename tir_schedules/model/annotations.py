"""Annotations by which primitives of `Schedule` ask for passes of this project. TVM does not know them and
keeps them on loops and blocks. Attributes of a function say so."""

PREFIX = "tir_schedules."
"""What all of these names begin with."""

UNROLL_STAGES = "tir_schedules.unroll_stages"
"""On a pipelined loop: how many stages are unrolled."""

COPIES_FIRST = "tir_schedules.copies_first"
"""On a pipelined loop: the copies of a later tile stay in front of the compute. For the passes
`copies_after_compute` and `sink_waits`."""

THREADBLOCK_SWIZZLE = "tir_schedules.threadblock_swizzle"
"""On the loop on blockIdx.x: how many columns of blocks a group of the threadblock swizzle has."""

MBARRIER_PIPELINE = "tir_schedules.mbarrier_pipeline"
"""On a loop over K tiles: how many stages the pipeline has."""

WARP_SPECIALIZATION = "tir_schedules.warp_specialization"
"""On a loop over K tiles: how many stages the pipeline has, and how many rows and columns of blocks a
cluster. Then, of the boxes of C in a warpgroup's tile: rows, columns, and how many fit into shared memory at
a time. Last, whether warpgroups have columns of a tile each, else rows."""

PERSISTENT_KERNEL = "tir_schedules.persistent_kernel"
"""On the loop on blockIdx.y: how many persistent blocks compute all tiles, how many rows of tiles a stripe
has, and how many blocks a cluster along rows and along columns. With Stream-K, also how many tiles are shared
along K, and how many units of K each has."""

STREAM_K_ACCUMULATE = "tir_schedules.stream_k_accumulate"
"""On a loop over K tiles that Stream-K shares out: how many iterations it has, how many K tiles a unit has,
and how many elements of A and of B lie between one unit and the next."""

EXTENTS = "tir_schedules.extents"
"""Attribute of a function: the extents of its matrices, where its buffers are as large as whole tiles. For
the pass `tensor_maps`."""

PITCHES = "tir_schedules.pitches"
"""Attribute of a function: bytes from one row of a matrix to the next, where the extents do not say so. For
the pass `tensor_maps`."""

CLUSTER = "tir_schedules.cluster"
"""Attribute of a function: how many blocks a cluster has, along x."""

LOOP_UNSWITCHING = "tir_schedules.loop_unswitching"
"""On a loop: its loop-invariant guards move in front of it."""

SERPENTINE_LOOPS = "tir_schedules.serpentine_loops"
"""On a loop: it runs backwards in every odd iteration of a loop around it. The value says which: 1 is the
next loop outwards, 2 the one around that."""

TMA_PREFETCH = "tir_schedules.tma_prefetch"
"""On a loop over K tiles: how many stages the pipeline has. One thread issues the copies ahead, and all
threads compute."""

WRAP_EDGE_TILES = "tir_schedules.wrap_edge_tiles"
"""On a padded copy, which may read any row of the matrix in place of one beyond the last: the dimension of
the rows, and how many neighbours along it are copied at a time."""

SHIFT_EDGE_TILES = "tir_schedules.shift_edge_tiles"
"""On a padded copy, or a copy of the padded result, whose last tile may start earlier: threes of an axis, the
extent of a tile along it, and that of the matrix."""

ROTATE_ROWS = "tir_schedules.rotate_rows"
"""On a copy of tiles to a matrix, the columns of whose rows are rotated: how many columns a tile has, and
how many elements a line of memory."""

DIAGONAL_ROWS = "tir_schedules.diagonal_rows"
"""On a copy to shared memory: by how many elements each row is shifted against the row above it."""

LOOP_PEELING = "tir_schedules.loop_peeling"
"""On a loop over K tiles: its last iteration is peeled."""

BARRIER_BEFORE = "tir_schedules.barrier_before"
"""On a loop that all threads of a block run: a barrier comes before it."""

LAST_BLOCK = "tir_schedules.last_block"
"""On a loop over blocks: the last block to finish executes the next loop nest. 1 for fences between the two,
0 for marks."""

ASYNC_COPIES = "tir_schedules.async_copies"
"""On the root block, as all that follow are: TVM's option tirx.use_async_copy."""

COPIES_BEFORE_BARRIERS = "tir_schedules.copies_before_barriers"
"""TVM's InjectPTXAsyncCopy runs before ThreadSync.

ThreadSync puts a barrier between accesses to the same buffer, and does not tell the stages of a multistage
buffer apart. Once the copies are cp.async calls it does not see them, and only the barrier after each wait
remains. That is enough if the order of the pipeline's statements puts that barrier between the last read of a
stage and its refill.
"""

L2_PREFETCH = "tir_schedules.l2_prefetch"
COPIES_AFTER_WAIT = "tir_schedules.copies_after_wait"
COPIES_AFTER_COMPUTE = "tir_schedules.copies_after_compute"
SINK_WAITS = "tir_schedules.sink_waits"
PROLOGUE_WAIT = "tir_schedules.prologue_wait"
UNROLL_DRAIN = "tir_schedules.unroll_drain"
BARRIER_ELIMINATION = "tir_schedules.barrier_elimination"
SERPENTINE_GRID = "tir_schedules.serpentine_grid"
TENSOR_MAPS = "tir_schedules.tensor_maps"

DEPENDENT_LAUNCH = "tir_schedules.dependent_launch"
"""The printed CUDA is rewritten, see compiler/dependent_launch.py."""

GUARD_HOISTING = "tir_schedules.guard_hoisting"
"""TVM's option support_block_scope_hoisting of HoistIfThenElse."""

BUFFERS_APART = "tir_schedules.buffers_apart"
"""TVM's option tirx.disable_storage_rewrite."""

WARP_SIZE = "tir_schedules.warp_size"
"""Threads that TVM takes for a warp, which share buffers of its scope "warp"."""
