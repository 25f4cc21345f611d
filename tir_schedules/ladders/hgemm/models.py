"""Models of the rungs of HGEMM, on a GPU of Hopper and before it.

Those of rungs before Hopper are fitted to 1024..8192 of bench_hgemm_h200.json, and off by up to 8 %. Of
mma_multistage:128x128 only 1000x1000x1000 was measured: 14.2 to 15.7 us. For odd rows rungs with cp.async
have the share of mma_multistage, and wmma_shared that of wmma_padded.

wmma_naive is the only one that an SM of little shared memory takes in all kinds. Neither one block of it
alone on an SM nor odd rows were measured; it is off by 26 % at 1024, so as not to look too fast there.
"""

from __future__ import annotations

from functools import partial

from tir_schedules.ladders.hgemm.tile_choice import with_copies
from tir_schedules.ladders.waves import Rate

BY_ELEMENTS = "rows are no multiple of 16 bytes and are copied element by element"

by_elements = partial(Rate, odd=0.19, slow=f"{BY_ELEMENTS}, with nothing under way")

MODELS = {
    "repacked": with_copies,
    "split_k": with_copies,
    "tma_store": with_copies,
    "cluster": partial(with_copies, slower=1.01),
    "persistent": partial(with_copies, slower=1.11),
    "warp_specialized": partial(with_copies, slower=1.15),
    "tma": partial(with_copies, slower=1.14),
    "wgmma_async": partial(with_copies, slower=1.15, odd=5.6),
    "wgmma": partial(with_copies, slower=2.13, odd=6.2),
    "mma_multistage": by_elements(2120, 0.05),
    "mma_multistage:128x128": by_elements(1250, 0),
    "mma_xor_swizzle": by_elements(1956, 0.1),
    "mma_ldmatrix": by_elements(1622, 0.05),
    "wmma_swizzled_grid": by_elements(1600, 0.05),
    "wmma_staged_epilogue": by_elements(1517, 0),
    "wmma_register_pipelined": by_elements(1477, 0.1),
    "wmma_pipelined": by_elements(1622, 0.5),
    "wmma_async": by_elements(1688, 0.7),
    "wmma_padded": Rate(1330, 0.8, odd=0.79),
    "wmma_shared": Rate(727, 0.5, odd=0.79),
    "wmma_naive": Rate(115, 1.2, odd=0.5),
}
