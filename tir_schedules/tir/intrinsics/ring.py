"""A ring of slots in shared memory for slabs of operands, and the barriers of its slots.

An intrinsic knows the buffers that it matches, not the loop that it stands in. So `full()` and `phase()`
stand for the barrier of the slab's slot, and for the phase that ends when the slab is there. The passes
`ring_barriers` and `warp_roles` know the number of the slab, and put what it makes of them in their place.
"""

from __future__ import annotations

from typing import Any

from tvm.backend.cuda.op import cuda_func_call
from tvm.script import tirx as T

FULL, PHASE = "tir_schedules.full", "tir_schedules.phase"
MOST_SLOTS = 8
TEXT = f"""// A barrier of the ring: that a slot is full, from {MOST_SLOTS} on that it is empty.
static __device__ inline unsigned ring_barrier(int number)
{{
    __shared__ unsigned long long barriers[{2 * MOST_SLOTS}];
    return static_cast<unsigned>(__cvta_generic_to_shared(&barriers[number]));
}}
"""


def full() -> Any:
    """The address of the barrier that tells the slab's slot is full."""
    return T.call_extern("uint32", FULL)


def phase() -> Any:
    """The parity of the phase in which the slab comes."""
    return T.call_extern("uint32", PHASE)


def ring_barrier(number: Any) -> Any:
    """The address of a barrier of the ring: of slot `number`, from MOST_SLOTS on that it is empty."""
    return cuda_func_call("ring_barrier", number, source_code=TEXT, return_type="uint32")
