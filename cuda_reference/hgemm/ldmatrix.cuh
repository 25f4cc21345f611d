// ldmatrix: what lanes have of 8 x 8 matrices of 16-bit elements is in mma_tiles.cuh.
#pragma once

// Four 8 x 8 matrices from shared memory, a register of each. address: of the lane's row.
template <bool TRANSPOSED> static __device__ void load_matrices(unsigned (&value)[4], unsigned address)
{
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                     : "r"(address)
                     : "memory");
}
