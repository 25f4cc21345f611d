// Lane 0 of a warp sees another block's flag, and needs a fence: __syncwarp orders only what its lanes wrote.
// launch: grid=2 block=32
// in X: int32[32] = numbers(32)
// out P: int32[32]
// out Y: int32[32]
// right: Y == X * 3
// broken 1: race(put, get) -- no fence of the reader
// broken 2: race(put, get) -- its fence is of the block's scope
// broken 3: race(put, get) -- no fence of the writer
// broken 4: race(put, get) -- the readers do not meet

__device__ int flag;

extern "C" __global__ void KERNEL(const int* X, int* P, int* Y) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    P[t] = X[t] * 3;  // @put
#ifndef BROKEN_3
    __threadfence();
#endif
    __syncwarp();
    if (t == 0) *(volatile int*)&flag = 1;
    return;
  }
  if (t == 0) {
    while (!*(volatile int*)&flag) {
    }
#if defined BROKEN_2
    __threadfence_block();
#elif !defined BROKEN_1
    __threadfence();
#endif
  }
#ifndef BROKEN_4
  __syncwarp();
#endif
  Y[t] = P[t];  // @get
}
