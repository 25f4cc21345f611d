// In which order the tiles of C are computed: neighbours in time share rows and columns in the L2 cache.
#pragma once

// A tile by its place among the rows and columns of tiles.
struct TileOfC {
    int row, col;
};

// Tile number `tile` of rows x cols tiles. They are cut into stripes of HEIGHT rows, the last may have fewer;
// a stripe is walked column by column.
template <int HEIGHT> static __device__ __forceinline__ TileOfC tile_in_stripes(int tile, int rows, int cols)
{
    const int stripe = tile / (HEIGHT * cols), within = tile % (HEIGHT * cols);
    const int height = min(HEIGHT, rows - stripe * HEIGHT);
    return {stripe * HEIGHT + within % height, within / height};
}
