"""fp32 matrix multiplication, from one thread per element past warp tiling to overlapped copies.

After article 003 ("choiBLAMS") up to `vectorized`, and article 000 ("Warp Tiling") up to `warp_tiling`.
"""

LADDER = (
    "naive",
    "coalesced",
    "shared_tile",
    "thread_tile_1d",
    "thread_tile_2d",
    "vectorized",
    "transposed",
    "warp_tiling",
    "lane_quads",
    "pipelined",
    "multistage",
)
