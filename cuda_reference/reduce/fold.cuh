// Sums in shared memory: first loads, a level of a tree, the last 64 sums.

#pragma once

// What a tile is made of.
template <typename T, bool IN_MEMORY> struct Word {
    typedef T type;
};
template <typename T> struct Word<T, true> {
    typedef volatile T type;
};

// Element i of X, zero beyond its N elements.
template <typename T> static __device__ T element(const T *X, int i, int N)
{
    return i < N ? X[i] : T(0);
}

// A level: the first s threads add what lies s further, and all threads meet.
template <typename T> static __device__ void fold_half(T *tile, int t, int s)
{
    if (t < s)
        tile[t] += tile[t + s];
    __syncthreads();
}

// The last 64 sums, by one warp. Lanes read, meet, write, meet: without __syncwarp a lane could read what
// another has not written yet, or write what another has not read yet.
template <typename T> static __device__ void fold_last_warp(T *tile, int t)
{
    T total = tile[t];
#pragma unroll
    for (int s = 32; s > 0; s /= 2) {
        total += tile[t + s];
        __syncwarp();
        tile[t] = total;
        __syncwarp();
    }
}

// The same in volatile memory: the idiom of older tutorials, without __syncwarp. It is kept to show what is
// wrong with it, for it is right only if the warp happens to run in lockstep.
template <typename T> static __device__ void fold_last_warp(volatile T *tile, int t)
{
#pragma unroll
    for (int s = 32; s > 0; s /= 2)
        tile[t] += tile[t + s];
}
