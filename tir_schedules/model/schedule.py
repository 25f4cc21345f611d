"""The Schedule that a rung is written with: TVM's primitives, and those of this project beside them.

A primitive of this project leaves an annotation on a loop, a block or the whole function. A pass of
`tir/passes` finds it there while TVM lowers the function, and does what the primitive says. So the schedule
is the whole program: what it does not call does not happen.

TVM takes seconds to import, and a rung has to be listed without it. So `Schedule` is derived from TVM's class
for type checkers alone; `open_schedule` in `tir/schedule.py` makes the class that is derived from both.
"""

# The class below mends types of the one it is derived from.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tir_schedules.model import annotations

if TYPE_CHECKING:
    from tvm.s_tir import Schedule as TvmSchedule
    from tvm.s_tir.schedule import LoopRV as Loop
    from tvm.s_tir.schedule import SBlockRV as Block
    from tvm.tirx import PrimFunc as PrimFunc
else:
    TvmSchedule = Loop = Block = PrimFunc = object


class Schedule(TvmSchedule):
    """TVM's Schedule with further primitives. Each of these raises TVM's ScheduleError for a loop or block
    that is not in the schedule."""

    if TYPE_CHECKING:  # TVM declares each of several loops to be a list of loops

        def reorder(self, *ordered_loops: Loop) -> None: ...

        def merge(self, *loops: Loop) -> Loop: ...

        def fuse(self, *loops: Loop, preserve_unit_iters: bool = True) -> Loop: ...

    # Loops.

    def peel_last(self, loop: Loop) -> None:
        """Loop peeling: the last iteration of a loop becomes a copy of the body after the loop, so that only
        this copy has guards at the edge of K."""
        self._on_loop(loop, annotations.LOOP_PEELING, 1)

    def unswitch(self, loop: Loop) -> None:
        """Loop unswitching: guards that do not depend on a loop's variable move in front of the loop."""
        self._on_loop(loop, annotations.LOOP_UNSWITCHING, 1)

    def reverse_in_odd(self, loop: Loop, outwards: int = 1) -> None:
        """Serpentine order: a loop runs backwards in odd iterations of a loop around it. outwards: 1 for the
        next loop, 2 for the one around that. The extent of the loop is a power of two."""
        self._on_loop(loop, annotations.SERPENTINE_LOOPS, outwards)

    def unroll_stages(self, loop: Loop, stages: int) -> None:
        """A pipelined loop is unrolled by its number of stages, so that each stage is a constant."""
        self._on_loop(loop, annotations.UNROLL_STAGES, stages)

    def keep_copies_first(self, loop: Loop) -> None:
        """Copies of a later tile stay in front of the compute of a pipelined loop, where
        `move_copies_behind_compute` moves those of other loops."""
        self._on_loop(loop, annotations.COPIES_FIRST, 1)

    def swizzle_threadblocks(self, loop: Loop, columns: int) -> None:
        """Threadblock swizzle: a loop on blockIdx.x is split into groups of so many columns of blocks on
        blockIdx.z. Blocks that the last group lacks return at once."""
        self._on_loop(loop, annotations.THREADBLOCK_SWIZZLE, columns)

    def pipeline_by_mbarriers(self, loop: Loop, stages: int) -> None:
        """An mbarrier for each stage of a loop over K tiles, in place of waits and __syncthreads."""
        self._on_loop(loop, annotations.MBARRIER_PIPELINE, stages)

    def prefetch_boxes(self, loop: Loop, stages: int) -> None:
        """TMA prefetch: one thread has boxes of later K tiles, or pieces of an array, copied into stages, and
        all threads compute. They meet for each K tile where the schedule has a statement in which they wait
        for it. Else warps release a stage when they have read it."""
        self._on_loop(loop, annotations.TMA_PREFETCH, stages)

    def specialize_warps(
        self,
        loop: Loop,
        stages: int,
        cluster: tuple[int, int] = (1, 1),
        boxes: tuple[int, int, int] = (0, 0, 0),
        part_columns: bool = False,
    ) -> None:
        """Warp specialization: a producer warpgroup copies the K tiles of a loop into stages, the others
        multiply them. cluster: rows and columns of blocks that share copies. boxes: of C in a warpgroup's
        tile, rows and columns of boxes, and how many fit into shared memory at a time; zeros where C is
        stored from registers. part_columns: whether warpgroups have columns of a tile each, else rows."""
        numbers = [stages, *cluster, *boxes, int(part_columns)]
        self._on_loop(loop, annotations.WARP_SPECIALIZATION, numbers)

    def make_persistent(
        self,
        loop: Loop,
        programs: int,
        group: int = 1,
        cluster: tuple[int, int] = (1, 1),
        shared: tuple[int, int] | None = None,
    ) -> None:
        """Persistent kernel: the grid that a loop on blockIdx.y and the one on blockIdx.x in it make becomes
        a loop over tiles in so many blocks. group: rows of tiles in a stripe. cluster: blocks of a cluster
        along rows and along columns. shared: with Stream-K, how many tiles are shared along K, and how many
        units of K each has."""
        self._on_loop(loop, annotations.PERSISTENT_KERNEL, [programs, group, *cluster, *(shared or ())])

    def accumulate_shares(self, loop: Loop, k_tiles: int, unit: int, a_step: int, b_step: int) -> None:
        """Stream-K: a loop over K tiles runs over the units of K that a program has of a tile, and sums are
        added to those of others in C. k_tiles: of the loop. unit: K tiles of a unit. a_step, b_step: elements
        of A and of B from one unit to the next."""
        self._on_loop(loop, annotations.STREAM_K_ACCUMULATE, [k_tiles, unit, a_step, b_step])

    def continue_in_last_block(self, loop: Loop, fenced: bool) -> None:
        """Fuses two kernels: the last block to finish a loop over blocks executes the next loop nest.
        fenced: partial sums are passed on by fences, else by marks."""
        self._on_loop(loop, annotations.LAST_BLOCK, int(fenced))

    def synchronize_before(self, loop: Loop) -> None:
        """A barrier of all threads of a block before a loop. TVM puts its own where it sees two threads
        access the same shared memory, but it does not see what an intrinsic reads."""
        self._on_loop(loop, annotations.BARRIER_BEFORE, 1)

    # Blocks.

    def wrap_edge_tiles(self, copy: Block, dimension: int, width: int) -> None:
        """A padded copy reads the first rows again in place of those beyond the last, without a guard.
        dimension: of the rows. width: neighbours along it that are copied at a time."""
        self._on_block(copy, annotations.WRAP_EDGE_TILES, [dimension, width])

    def shift_edge_tiles(self, copy: Block, *edges: tuple[int, int, int]) -> None:
        """The last tile of a padded copy, or of a copy of the padded result, starts earlier, so that it ends
        with the matrix. edges: axis, counted from the last, -1; extent of a tile; extent of the matrix."""
        self._on_block(copy, annotations.SHIFT_EDGE_TILES, [number for edge in edges for number in edge])

    def rotate_rows(self, copy: Block, width: int, line: int) -> None:
        """Rotates the columns of each row that a copy writes to a matrix, within the `width` columns of its
        tile, so that a warp's stores begin with lines of so many elements. `line` divides `width`."""
        self._on_block(copy, annotations.ROTATE_ROWS, [width, line])

    def store_diagonally(self, copy: Block, shift: int) -> None:
        """Diagonal storage: each row of the tile that a copy writes to shared memory begins `shift` elements
        after the row above it, around its end. shift: divides the length of a row; accesses are no wider."""
        self._on_block(copy, annotations.DIAGONAL_ROWS, shift)

    # The whole function.

    def async_copies(self) -> None:
        """Copies of the asynchronous stages of pipelines become cp.async."""
        self._ask(annotations.ASYNC_COPIES)

    def async_copies_before_barriers(self) -> None:
        """cp.async is put in before barriers are: then a barrier after each wait is all that is left of them.
        The order of the pipeline's statements has to put that barrier between the last read of a stage and
        its refill."""
        self._ask(annotations.COPIES_BEFORE_BARRIERS)

    def prefetch_l2(self) -> None:
        """16-byte cp.async fetch whole lines of 128 bytes into L2."""
        self._ask(annotations.L2_PREFETCH)

    def move_copies_behind_compute(self) -> None:
        """In loops with a pipeline within a pipeline: the copies of a later tile follow the compute, and the
        wait stands where the next tile is needed."""
        self._ask(annotations.COPIES_AFTER_COMPUTE)

    def move_copies_behind_waits(self) -> None:
        """In loops with a pipeline: the copies of a later tile follow the wait for the one that is needed."""
        self._ask(annotations.COPIES_AFTER_WAIT)

    def sink_waits(self) -> None:
        """In loops with a pipeline within a pipeline: the wait stands where the next tile is needed."""
        self._ask(annotations.SINK_WAITS)

    def relax_prologue_wait(self) -> None:
        """The prologue of a pipeline waits for its first K tile alone."""
        self._ask(annotations.PROLOGUE_WAIT)

    def unroll_drain(self) -> None:
        """The epilogue that drains a pipeline is unrolled, so that the depth of each wait is a constant."""
        self._ask(annotations.UNROLL_DRAIN)

    def eliminate_barriers(self) -> None:
        """One barrier per tile of a double-buffered loop: the one in front of stores is dropped."""
        self._ask(annotations.BARRIER_ELIMINATION)

    def serpentine_grid(self) -> None:
        """Groups of blocks with an odd blockIdx.z take their rows, on blockIdx.y, in reverse."""
        self._ask(annotations.SERPENTINE_GRID)

    def encode_tensor_maps(self) -> None:
        """Arrays that boxes are copied of become tensor maps, parameters that the host encodes."""
        self._ask(annotations.TENSOR_MAPS)

    def overlap_launches(self) -> None:
        """Programmatic dependent launch from sm_90 on, where the kernel follows another one."""
        self._ask(annotations.DEPENDENT_LAUNCH)

    def hoist_guards(self) -> None:
        """Guards in blocks are hoisted out of loops, as TVM does with others."""
        self._ask(annotations.GUARD_HOISTING)

    def keep_buffers_apart(self) -> None:
        """Buffers do not take each other's place in memory: TVM's StorageRewrite is left out."""
        self._ask(annotations.BUFFERS_APART)

    def set_warp_size(self, threads: int) -> None:
        """So many threads, 32 or more, are a warp for TVM: they share buffers of its scope "warp"."""
        self._ask(annotations.WARP_SIZE, threads)

    def _on_loop(self, loop: Loop, annotation: str, value: Any) -> None:
        """Annotate a loop. TypeError for anything else."""
        if type(loop).__name__ != "LoopRV":
            raise TypeError(f"it takes a loop of this schedule, not {described(loop)}")
        self.annotate(loop, annotation, value)

    def _on_block(self, block: Block, annotation: str, value: Any) -> None:
        """Annotate a block. TypeError for anything else."""
        if type(block).__name__ != "SBlockRV":
            raise TypeError(f"it takes a block of this schedule, not {described(block)}")
        self.annotate(block, annotation, value)

    def _ask(self, annotation: str, value: int = 1) -> None:
        """Annotate the root block."""
        self.annotate(self.get_sblock("root"), annotation, value)


def described(value: object) -> str:
    """What was given in place of a loop or block, for messages."""
    kinds = {"LoopRV": "a loop", "SBlockRV": "a block", "list": "a list of them"}
    return kinds.get(type(value).__name__, repr(value))
