// Where tiles of C start.
#pragma once

// The start along an axis of `extent` of the tile whose first element would be `first`. A tile that would
// reach beyond the matrix starts earlier and ends with it. The part that it shares with the tile before is
// multiplied twice and written once, by the other tile. A matrix smaller than a tile has one tile, which
// reaches beyond. With BEYOND all tiles start at multiples of TILE, and ragged ones reach beyond.
template <int TILE, bool BEYOND> static __device__ __forceinline__ int tile_start(int first, int extent)
{
    return BEYOND ? first : min(first, max(extent - TILE, 0));
}
