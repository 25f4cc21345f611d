"""The cost of the articles' listings: one table, which schedules and twins are compared with.

The CPU machine counted these numbers from the listings themselves, compiled for sm_80, on the sizes of
EXTENTS. Schedule and twin of a step have the same numbers, except where a Difference says otherwise and why.
`tests/ladders/test_listings.py` checks both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping

Fact = int | tuple[int, ...] | tuple[str, ...]

EXTENTS = {"sgemm": (256, 256, 256), "hgemm": (256, 256, 1536), "reduce": (1 << 16,)}
"""Ladder -> M, N, K, or N, that accesses and barriers are counted on: whole tiles. B of hgemm lies N x K."""

GRID_EXTENTS = (1024, 2048, 512)
"""M, N, K that grids are given for."""

THREADS = (0, 1, 32, -1)
"""Threads whose elements the maps have: three, and the last of a block. x runs fastest."""

FACTS = {
    "threads": "of a block",
    "grid": "blocks (x, y, z) for M, N, K = 1024, 2048, 512",
    "shared": "bytes of shared memory of a block",
    "load": "bytes of the widest load from global memory",
    "barriers": "of a thread for each tile along K, or for its whole sum",
    "ahead": "tiles whose copies are under way when the main loop begins",
    "waits": "how many tiles the waits leave under way: in the main loop, and in the drain",
}
"""What the listings say of launch and code, in tables and tests."""

COUNTS = {
    "all_barriers": "of a thread, all in all",
    "global_load": "requests of warps and sectors: loads into registers, or cp.async",
    "global_store": "requests of warps and sectors",
    "shared_load": "requests of warps and wavefronts, those of fragments left out",
    "shared_store": "requests of warps and wavefronts, those of cp.async left out",
    "fragment_load": "requests of warps and wavefronts of load_matrix_sync, as ldmatrix reads",
    "shared_copy": "requests of warps and wavefronts of cp.async",
}
"""What is counted on EXTENTS. A listing without one of the accesses has no such fact."""

MAPS = {
    "A": "rows x columns that threads 0, 1, 32 and the last of block (0, 0, 0) read",
    "B": "the same of B",
    "C": "rows x columns that they write",
    "X": "elements that they read",
    "Y": "elements that they write, - where there is none",
}
"""Who has what. "0-3 by 8 to 59" is 0-3, 8-11, and so on to 56-59."""

HASHES = {"all_maps": "a hash of who has what among all threads of the block, for each array"}
"""Digits of SHA-256, which hold all threads and not only those of THREADS. Without them where the article
prints no kernel."""

SOURCES = {
    "listing": "the article prints the kernel",
    "part": "the article prints one kernel with all techniques; it was counted without those of later steps",
    "words": "the article prints no kernel; one was written after its words and its later listings",
}
"""Where the numbers of a step come from."""


@dataclass(frozen=True)
class Difference:
    """Where a schedule or twin has another number than the listing. forms: "schedule", "twin" or both."""

    fact: str
    value: Fact
    reason: str
    forms: tuple[str, ...] = ("schedule", "twin")


@dataclass(frozen=True)
class Listing:
    """source: a key of SOURCES. facts: by keys of FACTS, COUNTS, MAPS and HASHES, without what the article
    leaves open."""

    source: str
    facts: Mapping[str, Fact]
    differences: tuple[Difference, ...] = ()


def after(before: Listing, source: str, *differences: Difference, **changes: Fact | None) -> Listing:
    """The listing of the next step: the facts that it changes, None for one that it has no more."""
    facts = {name: fact for name, fact in {**before.facts, **changes}.items() if fact is not None}
    return Listing(source, facts, differences)


UNROLLED = (
    "nvcc unrolls the listing's loop over a tile {} times, schedule and twin unroll it whole: more reads of A"
    " become one of 16 bytes. Wavefronts are the same, and with #pragma unroll so are the listing's requests."
)

# ---- 000, 003: SGEMM ---
# fmt: off
NAIVE = Listing("listing", {
    "threads": 1024, "grid": (32, 64, 1), "shared": 0, "load": 4, "barriers": 0, "all_barriers": 0,
    "global_load": (1048576, 17301504), "global_store": (2048, 65536),
    "A": ("0 x 0-255", "1 x 0-255", "0 x 0-255", "31 x 0-255"),
    "B": ("0-255 x 0", "0-255 x 0", "0-255 x 1", "0-255 x 31"),
    "C": ("0 x 0", "1 x 0", "0 x 1", "31 x 31"),
    "all_maps": ("6513d021", "d8a167af", "e3544799"),
})
COALESCED = after(NAIVE, "listing",
    global_load=(1048576, 2621440), global_store=(2048, 8192),
    A=("0 x 0-255", "0 x 0-255", "1 x 0-255", "31 x 0-255"),
    B=("0-255 x 0", "0-255 x 1", "0-255 x 0", "0-255 x 31"),
    C=("0 x 0", "0 x 1", "1 x 0", "31 x 31"),
    all_maps=("73320f17", "9a221288", "e8fb3d54"),
)
SHARED_TILE = after(COALESCED, "listing",
    shared=8192, barriers=2, all_barriers=16,
    global_load=(32768, 131072), shared_load=(655360, 786432), shared_store=(32768, 32768),
    A=("0 x 0 by 32 to 224", "0 x 1 by 32 to 225", "1 x 0 by 32 to 224", "31 x 31 by 32 to 255"),
    B=("0 by 32 to 224 x 0", "0 by 32 to 224 x 1", "1 by 32 to 225 x 0", "31 by 32 to 255 x 31"),
    all_maps=("a5d22dae", "0eac2665", "e8fb3d54"),
)

THREAD_TILE_1D = after(SHARED_TILE, "listing",
    Difference("shared_load", (163840, 589824), UNROLLED.format("four")),
    grid=(32, 16, 1), shared=20480,
    global_load=(20480, 278528), global_store=(2048, 32768),
    shared_load=(196608, 589824), shared_store=(8192, 20480),
    B=("0 by 32 to 224 x 0-3", "0 by 32 to 224 x 4-7", "1 by 32 to 225 x 0-3", "31 by 32 to 255 x 124-127"),
    C=("0 x 0-3", "0 x 4-7", "1 x 0-3", "31 x 124-127"),
    all_maps=("a5d22dae", "bd231433", "1dbbf89e"),
)
THREAD_TILE_2D = after(THREAD_TILE_1D, "listing",
    Difference("shared_load", (65536, 196608), UNROLLED.format("two")),
    grid=(8, 16, 1), shared=32768,
    global_load=(8192, 81920), shared_load=(98304, 196608), shared_store=(5120, 8192),
    A=("0-3 x 0 by 32 to 224", "0-3 x 1 by 32 to 225", "4-7 x 0 by 32 to 224", "124-127 x 31 by 32 to 255"),
    C=("0-3 x 0-3", "0-3 x 4-7", "4-7 x 0-3", "124-127 x 124-127"),
    all_maps=("de1a7944", "bd231433", "3f45ebd2"),
)
VECTORIZED = after(THREAD_TILE_2D, "listing",
    load=16,
    global_load=(2048, 32768), global_store=(512, 8192),
    shared_load=(65536, 196608), shared_store=(2048, 8192),
    A=("0 x 0-3 by 32 to 227", "0 x 4-7 by 32 to 231", "4 x 0-3 by 32 to 227", "127 x 28-31 by 32 to 255"),
    all_maps=("60d65ac1", "bd231433", "3f45ebd2"),
)

SERIES_1D = after(SHARED_TILE, "words",  # its loop over a tile unrolled, else reads of A stay single
    threads=512, grid=(16, 32, 1), shared=4096, all_barriers=64,
    global_load=(16384, 65536), shared_load=(196608, 327680), shared_store=(16384, 16384),
    A=("0 x 0 by 8 to 248", "0 x 1 by 8 to 249", "4 x 0 by 8 to 248", "63 x 7 by 8 to 255"),
    B=("0 by 8 to 248 x 0", "0 by 8 to 248 x 1", "0 by 8 to 248 x 32", "7 by 8 to 255 x 63"),
    C=("0-7 x 0", "0-7 x 1", "0-7 x 32", "56-63 x 63"),
    all_maps=None,
)
SERIES_2D = after(SERIES_1D, "words",
    threads=64,
    global_store=(2048, 65536), shared_load=(32768, 196608),
    A=("0 by 8 to 56 x 0 by 8 to 248", "0 by 8 to 56 x 1 by 8 to 249", "4 by 8 to 60 x 0 by 8 to 248",
       "7 by 8 to 63 x 7 by 8 to 255"),
    B=("0-255 x 0", "0-255 x 1", "0-255 x 32", "0-255 x 63"),
    C=("0-7 x 0-7", "0-7 x 8-15", "32-39 x 0-7", "56-63 x 56-63"),
)
SERIES_VECTORIZED = after(SERIES_2D, "part",
    grid=(32, 16, 1), load=16,
    global_load=(4096, 65536), global_store=(512, 16384),
    shared_load=(32768, 163840), shared_store=(10240, 24576),
    A=("0, 32 x 0-3 by 8 to 251", "0, 32 x 4-7 by 8 to 255", "16, 48 x 0-3 by 8 to 251",
       "31, 63 x 4-7 by 8 to 255"),
    B=("0 by 4 to 252 x 0-3", "0 by 4 to 252 x 4-7", "2 by 4 to 254 x 0-3", "3 by 4 to 255 x 60-63"),
    all_maps=("af819582", "bf3cf5aa", "798f4a07"),
)
WARP_TILING = after(SERIES_VECTORIZED, "listing",
    threads=128,
    global_store=(512, 8192), shared_load=(49152, 131072),
    A=("0 x 0-3 by 8 to 251", "0 x 4-7 by 8 to 255", "16 x 0-3 by 8 to 251", "63 x 4-7 by 8 to 255"),
    B=("0 by 8 to 248 x 0-3", "0 by 8 to 248 x 4-7", "2 by 8 to 250 x 0-3", "7 by 8 to 255 x 60-63"),
    C=("0-3, 16-19 x 0-3", "0-3, 16-19 x 4-7", "0-3, 16-19 x 32-35", "44-47, 60-63 x 60-63"),
    all_maps=("d1b975ca", "e311b567", "134c321f"),
)

# ---- 001, 004: HGEMM ---
BLOCK_TILES = Listing("part", {
    "threads": 256, "grid": (16, 4, 1), "shared": 24576, "load": 16, "barriers": 2, "all_barriers": 96,
    "global_load": (4608, 73728), "global_store": (1024, 8192), "shared_store": (4608, 18432),
    "fragment_load": (12288, 196608),
    "A": ("0 by 8 to 24 x 0-7 by 32 to 1511", "0 by 8 to 24 x 8-15 by 32 to 1519",
          "32 by 8 to 56 x 0-7 by 32 to 1511", "231 by 8 to 255 x 24-31 by 32 to 1535"),
    "B": ("0, 8 x 0-7 by 32 to 1511", "0, 8 x 8-15 by 32 to 1519", "16, 24 x 0-7 by 32 to 1511",
          "119, 127 x 24-31 by 32 to 1535"),
    "C": ("0 by 8 to 56 x 0-1 by 8 to 57", "0 by 8 to 56 x 2-3 by 8 to 59",
          "0 by 8 to 56 x 64-65 by 8 to 121", "199 by 8 to 255 x 70-71 by 8 to 127"),
    "all_maps": ("73cb3004", "aedbf871", "a006fa59"),
})
PADDED = after(BLOCK_TILES, "part",
    shared=30720, shared_store=(4608, 36864), fragment_load=(12288, 49152),
)
ASYNC = after(PADDED, "part",  # the article has three buffers at once: of two it leaves the loop open
    shared=None, barriers=None, all_barriers=None,
    global_load=(4608, 92160), shared_store=None, shared_copy=(4608, 69120),
)
PIPELINED = after(ASYNC, "part", shared=92160, barriers=1, all_barriers=48, ahead=2, waits=(1, 0))
REGISTER_PIPELINED = after(PIPELINED, "part")
STAGED_EPILOGUE = after(REGISTER_PIPELINED, "part",
    all_barriers=50,
    global_store=(256, 4096), shared_load=(256, 1024), shared_store=(1024, 1024),
    C=("0 by 2 to 30 x 0-7", "0 by 2 to 30 x 8-15", "32 by 2 to 62 x 0-7", "225 by 2 to 255 x 120-127"),
    all_maps=("73cb3004", "aedbf871", "1655ba1f"),
)

UNPADDED_WIDE = after(BLOCK_TILES, "words",
    grid=(8, 8, 1),
    A=("0, 8 x 0-7 by 32 to 1511", "0, 8 x 8-15 by 32 to 1519", "16, 24 x 0-7 by 32 to 1511",
       "119, 127 x 24-31 by 32 to 1535"),
    B=("0 by 8 to 24 x 0-7 by 32 to 1511", "0 by 8 to 24 x 8-15 by 32 to 1519",
       "32 by 8 to 56 x 0-7 by 32 to 1511", "231 by 8 to 255 x 24-31 by 32 to 1535"),
    C=("0 by 8 to 56 x 0-1 by 8 to 57", "0 by 8 to 56 x 2-3 by 8 to 59", "0 by 8 to 56 x 64-65 by 8 to 121",
       "71 by 8 to 127 x 198-199 by 8 to 255"),
    all_maps=None,
)

# ---- 002: sums ---
DIVERGENT = Listing("words", {
    "threads": 256, "shared": 1024, "load": 4, "barriers": 9, "all_barriers": 9,
    "global_load": (2048, 8192), "global_store": (256, 256),
    "shared_load": (24320, 24320), "shared_store": (14080, 14080),
    "X": ("0", "1", "32", "255"), "Y": ("0", "-", "-", "-"),
})
INTERLEAVED = after(DIVERGENT, "words", shared_load=(6400, 24320), shared_store=(5120, 14080))
SEQUENTIAL = after(INTERLEAVED, "words", shared_load=(6400, 6400), shared_store=(5120, 5120))
FIRST_ADD = after(SEQUENTIAL, "part",
    global_store=(128, 128), shared_load=(3200, 3200), shared_store=(2560, 2560),
    X=("0, 256", "1, 257", "32, 288", "255, 511"), all_maps=("35099524", "374708ff"),
)
UNROLLED_WARP = after(FIRST_ADD, "listing", barriers=3, all_barriers=3)
# fmt: on

LISTINGS: Mapping[str, Mapping[str, Listing]] = {
    "000": {
        "naive": after(NAIVE, "words", all_maps=None),
        "shared memory": after(SHARED_TILE, "words", all_maps=None),
        "1D thread tile": SERIES_1D,
        "2D thread tile": SERIES_2D,
        "vectorized accesses": SERIES_VECTORIZED,
        "warp tiling": WARP_TILING,
    },
    "001": {
        "block and warp tiles": BLOCK_TILES,
        "padding": PADDED,
        "asynchronous copies": ASYNC,
        "three buffers in shared memory": PIPELINED,
        "two buffers in registers": REGISTER_PIPELINED,
        "write-back through shared memory": STAGED_EPILOGUE,
        "stripes of blocks: all techniques": after(STAGED_EPILOGUE, "listing"),
    },
    "002": {
        "baseline, divergent branches": DIVERGENT,
        "interleaved addressing": INTERLEAVED,
        "bank conflicts removed": SEQUENTIAL,
        "idle threads removed": FIRST_ADD,
        "last warp unrolled": UNROLLED_WARP,
        "completely unrolled": UNROLLED_WARP,
    },
    "003": {
        "kernel 1, naive": NAIVE,
        "kernel 2, coalesced": COALESCED,
        "kernel 3, shared memory": SHARED_TILE,
        "1D block tiling": THREAD_TILE_1D,
        "kernel 4, 2D block tiling": THREAD_TILE_2D,
        "kernel 5, vectorized": VECTORIZED,
    },
    "004": {
        "no padding": UNPADDED_WIDE,
        "8 elements of padding": after(
            UNPADDED_WIDE, "words", shared=30720, shared_store=(4608, 36864), fragment_load=(12288, 49152)
        ),
        # Loads without conflicts, and as much shared memory as three tiles have: no more is said.
        "a permutation in place of padding": Listing(
            "words", {"threads": 256, "shared": 73728, "fragment_load": (12288, 49152)}
        ),
        "the linked program: mma, ldmatrix": Listing(
            "words", {"threads": 256, "grid": (8, 8, 1), "shared": 27136, "load": 16, "barriers": 2}
        ),
    },
}
"""Number of an article -> its steps, as `articles.py` names them."""
