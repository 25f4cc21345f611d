"""A ring of slots in shared memory for slabs of operands, and the barriers of its slots.

An intrinsic knows the buffers that it matches, not the loop that it stands in. So `full()` and `phase()`
stand for the barrier of the slab's slot, and for the parity of its phase. The passes `ring_barriers` and
`warp_roles` know the number of the slab, and put what it makes of them in their place.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.backend.cuda.op import cuda_func_call
from tvm.script import tirx as T

FULL, PHASE = "tir_schedules.full", "tir_schedules.phase"
MOST_SLOTS = 8

BARRIER = f"""\
// The barrier of the ring that says slot `number` is full, or from {MOST_SLOTS} on that one is empty.
static __device__ inline unsigned ring_barrier(int number)
{{
    __shared__ unsigned long long barriers[{2 * MOST_SLOTS}];
    return shared_address(&barriers[number]);
}}
"""

SET_UP = f"""\
// Initialises the barriers of the ring. full, empty: arrivals of a phase. Next all threads have to wait for
// each other.
static __device__ inline void set_up_ring(unsigned ring, int slots, int full, int empty)
{{
    if (threadIdx.x == 0 && threadIdx.y == 0) {{
        for (int slot = 0; slot < slots; ++slot) {{
            initialise_barrier(ring + 8 * slot, full);
            if (empty > 0)
                initialise_barrier(ring + 8 * ({MOST_SLOTS} + slot), empty);
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
// A lane of each warp says that its warp is done with a slot.
static __device__ inline void release_slot(unsigned barrier)
{
    if (threadIdx.x % 32 == 0)
        arrive(barrier);
}
"""

RELEASE_IN_CLUSTER = """\
// A lane of each warp says that its warp is done with a slot, to all blocks of the cluster.
static __device__ inline void release_in_cluster(unsigned barrier, unsigned blocks)
{
    if (threadIdx.x % 32 < blocks)
        arrive_in_cluster(address_in_block(barrier, threadIdx.x % 32));
}
"""


def full() -> Any:
    """The address of the barrier that tells the slab's slot is full."""
    return T.call_extern("uint32", FULL)


def phase() -> Any:
    """The parity of the phase in which the slot is filled with the slab."""
    return T.call_extern("uint32", PHASE)


def stands_for(call: Any, name: str) -> bool:
    """Whether a call stands for what FULL, PHASE or the like name."""
    return getattr(call.op, "name", "") == "tirx.call_extern" and getattr(call.args[0], "value", "") == name


def first_thread() -> Any:
    """Whether a thread is the first one of its block."""
    return cuda_func_call("first_thread_of_block", source_code=FIRST_THREAD, return_type="bool")


def barrier(number: Any) -> Any:
    """The address of a barrier of the ring: of slot `number`, from MOST_SLOTS on that it is empty."""
    return cuda_func_call("ring_barrier", number, source_code=BARRIER, return_type="uint32")


def set_up(slots: int, full: int, empty: int = 0) -> Any:
    """The barriers initialised. full, empty: arrivals of a phase."""
    return tirx.Evaluate(cuda_func_call("set_up_ring", barrier(0), slots, full, empty, source_code=SET_UP))


def release(number: Any, blocks: int) -> Any:
    """Slot `number` released by a warp, in all blocks of a cluster."""
    empty = barrier(number + MOST_SLOTS)
    if blocks == 1:
        return tirx.Evaluate(cuda_func_call("release_slot", empty, source_code=RELEASE))
    return tirx.Evaluate(cuda_func_call("release_in_cluster", empty, blocks, source_code=RELEASE_IN_CLUSTER))
