"""fp32 matrix multiplication, from one thread per element to warp tiling (articles 003 and 000)."""

LADDER = ("naive", "coalesced", "shared_tile", "thread_tile_1d", "thread_tile_2d", "vectorized", "warp_tiling")
