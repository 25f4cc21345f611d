// Atomics on pairs of halves; the host has zeroed the sums.
#include <cuda_fp16.h>
// launch: grid=4 block=64
// in X: float16[512] = numbers(512, 8)
// inout Y: float16[16] = 0
// right: Y == X.reshape(32, 8, 2).sum(0, dtype=np.float32).reshape(16)
// broken 1: race(add, add) -- a plain addition

extern "C" __global__ void KERNEL(const __half2* X, __half2* Y) {
  const int t = threadIdx.x;
  const __half2 x = X[blockIdx.x * 64 + t];
#ifdef BROKEN_1
  Y[t % 8] = __hadd2(Y[t % 8], x);  // @add
#else
  atomicAdd(Y + t % 8, x);
#endif
}
