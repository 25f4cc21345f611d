"""The mbarriers of a multistage pipeline, whose stages in shared memory form a ring.

An intrinsic knows the buffers that it matches, not the loop around it. So `full()` and `phase()` are
placeholders for the mbarrier of the K tile's stage and for the parity of its phase, and `added()` tells
whether it is the first of its sums. The passes
`mbarrier_pipeline` and `warp_specialization` know the number of the K tile, and replace them.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.backend.cuda.op import cuda_func_call
from tvm.script import tirx as T

FULL, PHASE, ADDED = "tir_schedules.full", "tir_schedules.phase", "tir_schedules.added"
MOST_STAGES = 16

BARRIER = f"""\
// The barrier of the ring that says stage `number` is full, or from {MOST_STAGES} on that one is empty.
static __device__ inline unsigned ring_barrier(int number)
{{
    __shared__ unsigned long long barriers[{2 * MOST_STAGES}];
    return shared_address(&barriers[number]);
}}
"""

SET_UP = f"""\
// Initialises the barriers of the ring. full, empty: arrivals of a phase. Next all threads have to wait for
// each other.
static __device__ inline void set_up_ring(unsigned ring, int stages, int full, int empty)
{{
    if (threadIdx.x == 0 && threadIdx.y == 0) {{
        for (int stage = 0; stage < stages; ++stage) {{
            initialise_barrier(ring + 8 * stage, full);
            if (empty > 0)
                initialise_barrier(ring + 8 * ({MOST_STAGES} + stage), empty);
        }}
        publish_barriers();
    }}
}}
"""

FIRST_THREAD = """\
// Whether this is the first thread of the block.
static __device__ inline bool first_thread_of_block()
{
    return threadIdx.x == 0 && threadIdx.y == 0;
}
"""

RELEASE = """\
// A lane of each warp says that its warp is done with a stage.
static __device__ inline void release_stage(unsigned barrier)
{
    if (threadIdx.x % 32 == 0)
        arrive(barrier);
}
"""

RELEASE_IN_CLUSTER = """\
// A lane of each warp says that its warp is done with a stage, to all blocks of the cluster.
static __device__ inline void release_in_cluster(unsigned barrier, unsigned blocks)
{
    if (threadIdx.x % 32 < blocks)
        arrive_in_cluster(address_in_block(barrier, threadIdx.x % 32));
}
"""

RELEASE_IN_ROW_AND_COLUMN = """\
// A lane of each warp says that its warp is done with a stage, to blocks of the same row and column of the
// cluster. stacked: its rows.
static __device__ inline void release_in_row_and_column(unsigned barrier, unsigned stacked, unsigned blocks)
{
    const unsigned block = threadIdx.x % 32, own = block_in_cluster();
    if (block < blocks && (block % stacked == own % stacked || block / stacked == own / stacked))
        arrive_in_cluster(address_in_block(barrier, block));
}
"""


def full() -> Any:
    """The address of the mbarrier that tells when the K tile's stage is full."""
    return T.call_extern("uint32", FULL)


def phase() -> Any:
    """The parity of the phase in which the K tile fills its stage."""
    return T.call_extern("uint32", PHASE)


def added() -> Any:
    """Whether products of the K tile are added to sums; else sums begin with them, whatever was there."""
    return T.call_extern("int32", ADDED)


def stands_for(call: Any, name: str) -> bool:
    """Whether a call is the placeholder of that name, such as FULL or PHASE."""
    return getattr(call.op, "name", "") == "tirx.call_extern" and getattr(call.args[0], "value", "") == name


def first_thread() -> Any:
    """Whether a thread is the first one of its block."""
    return cuda_func_call("first_thread_of_block", source_code=FIRST_THREAD, return_type="bool")


def barrier(number: Any) -> Any:
    """The address of a barrier of the ring: of stage `number`, from MOST_STAGES on that it is empty."""
    return cuda_func_call("ring_barrier", number, source_code=BARRIER, return_type="uint32")


def set_up(stages: int, full: int, empty: int = 0) -> Any:
    """The barriers initialised. full, empty: arrivals of a phase."""
    return tirx.Evaluate(cuda_func_call("set_up_ring", barrier(0), stages, full, empty, source_code=SET_UP))


def release(number: Any, stacked: int = 1, beside: int = 1) -> Any:
    """Slot `number` released by a warp, in all blocks that fill it: those of the same row and column of the
    cluster, which has so many rows and columns of blocks."""
    empty, blocks = barrier(number + MOST_STAGES), stacked * beside
    if blocks == 1:
        released = cuda_func_call("release_stage", empty, source_code=RELEASE)
    elif blocks in (stacked, beside):
        released = cuda_func_call("release_in_cluster", empty, blocks, source_code=RELEASE_IN_CLUSTER)
    else:
        text = RELEASE_IN_ROW_AND_COLUMN
        released = cuda_func_call("release_in_row_and_column", empty, stacked, blocks, source_code=text)
    return tirx.Evaluate(released)
