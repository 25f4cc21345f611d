// Pieces of an array on their way to shared memory, copied in bulk: one thread starts a copy, no register holds
// what is copied, and a barrier counts its bytes.

#pragma once

// Starts the copy of bytes in a row to `target` in shared memory, and tells the barrier when they are there. Their
// number, and where they begin here and there, are multiples of 16.
static __device__ inline void load_bytes(unsigned target, const void *source, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     target),
                 "l"(source), "r"(bytes), "r"(barrier)
                 : "memory");
}

// A piece of ELEMENTS of an array that has N, to a stage that is free as the first thread knows: it announces the
// bytes and starts their copy. The last piece may end beyond the array. Then all threads store what 16 bytes are too
// many for, up to three elements, and zeros behind the end.
template <int ELEMENTS, typename T>
static __device__ inline void load_piece(T *stage, const T *array, int piece, int N, unsigned barrier)
{
    const long long first = (long long)piece * ELEMENTS;
    const int inside = N - first < ELEMENTS ? max(int(N - first), 0) : ELEMENTS;
    const int copied = inside / 4 * 4;
    if (threadIdx.x == 0) {
        arrive_announcing(barrier, copied * sizeof(T));
        if (copied > 0)
            load_bytes(shared_address(stage), array + first, copied * sizeof(T), barrier);
    }
    if (inside < ELEMENTS) {
        __syncthreads(); // now all threads know that the stage is free
        for (int i = copied + threadIdx.x; i < ELEMENTS; i += blockDim.x)
            stage[i] = i < inside ? array[first + i] : T(0);
        __syncthreads();
    }
}
