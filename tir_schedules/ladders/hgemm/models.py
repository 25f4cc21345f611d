"""Models of the rungs of HGEMM that can be the fastest, on a GPU of Hopper and before it."""

from __future__ import annotations

from tir_schedules.ladders.hgemm.tile_choice import with_copies
from tir_schedules.ladders.waves import Rate

BY_ELEMENTS = "rows are no multiple of 16 bytes and are copied element by element"

MODELS = {
    "repacked": with_copies,
    "mma_multistage": Rate(2120, 0.05, odd=0.19, slow=BY_ELEMENTS),
    "wmma_padded": Rate(1330, 0.8, odd=0.79),
}
