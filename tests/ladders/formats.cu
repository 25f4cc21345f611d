// The same by hand.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifndef NT
#define NT 1
#endif
#ifndef ACC
#define ACC half
#endif
#ifndef IN
#define IN half
#endif
#ifndef OUT
#define OUT ACC
#endif

extern "C" __global__ void hgemm_formats(const IN *A, const IN *B, OUT *C, int M, int N, int K)
{
    const int row = blockIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    if (col >= N)
        return;
    ACC sum = ACC(0.f);
    for (int k = 0; k < K; ++k)
        sum += ACC(A[row * K + k]) * ACC(B[NT ? col * K + k : k * N + col]);
    C[row * N + col] = OUT(sum);
}
