"""Models of the rungs of HGEMM that can be the fastest, on a GPU of Hopper and before it."""

from __future__ import annotations

from tir_schedules.ladders.hgemm.tile_choice import with_copies
from tir_schedules.ladders.waves import Rate

BY_ELEMENTS = "rows are no multiple of 16 bytes and are copied element by element"

# Of mma_multistage:128x128 only 1000x1000x1000 was measured: 14.2 to 15.7 us. For odd rows it has the share
# of mma_multistage. It is for small matrices, and for GPUs whose blocks have 99 KiB of shared memory.
MODELS = {
    "repacked": with_copies,
    "mma_multistage": Rate(2120, 0.05, odd=0.19, slow=BY_ELEMENTS),
    "mma_multistage:128x128": Rate(1250, 0, odd=0.19, slow=BY_ELEMENTS),
    "wmma_padded": Rate(1330, 0.8, odd=0.79),
}
