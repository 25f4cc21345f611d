"""fp32 matrix multiplication, from one thread per element past warp tiling (articles 003 and 000) to copies
that overlap with it all."""

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
