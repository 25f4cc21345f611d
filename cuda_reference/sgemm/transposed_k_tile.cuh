// A K tile of A that came as a box, laid out anew: its columns become rows.
#pragma once

// A box of ROWS x 32 floats lies as the matrix does, row by row, under the swizzle of 128 bytes: 16 bytes
// with the number c in row r lie at c ^ (r % 8). All THREADS threads store it column by column: a thread
// takes 16 bytes of a row at a time, and neighbouring threads take neighbouring rows, so that neither reads
// nor stores have bank conflicts.
template <int ROWS, int THREADS>
static __device__ __forceinline__ void transpose_k_tile(float *transposed, const float *box, unsigned barrier,
                                                 unsigned parity)
{
    constexpr int PIECES = 32 / 4; // of a row
    static_assert(THREADS % ROWS == 0 && PIECES % (THREADS / ROWS) == 0, "threads must share rows evenly");
    const int row = threadIdx.x % ROWS;
    wait_for_parity(barrier, parity);
#pragma unroll
    for (int i = 0; i < PIECES; i += THREADS / ROWS) {
        const int piece = i + threadIdx.x / ROWS;
        const float4 four = reinterpret_cast<const float4 *>(box)[row * PIECES + (piece ^ row % 8)];
        float *const to = transposed + 4 * piece * ROWS + row;
        to[0] = four.x;
        to[ROWS] = four.y;
        to[2 * ROWS] = four.z;
        to[3 * ROWS] = four.w;
    }
    __syncthreads();
}
