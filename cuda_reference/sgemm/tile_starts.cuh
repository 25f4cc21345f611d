// Where tiles of C start.
#pragma once

// Along an axis of `extent`, of the tile whose first element would be `first`. One that would reach beyond the
// matrix starts earlier and ends with it. What it shares with the tile before is multiplied twice and written
// once, by the other one. A matrix smaller than a tile has one, which reaches beyond. With BEYOND all tiles start
// at multiples of TILE, and ragged ones reach beyond.
template <int TILE, bool BEYOND> static __device__ __forceinline__ int tile_start(int first, int extent)
{
    return BEYOND ? first : min(first, max(extent - TILE, 0));
}
