// A message by volatile words: a block stores it and sets a flag that others wait for. One thread fences.
// launch: grid=4 block=64
// in X: int32[64] = numbers(64)
// inout D: int32[64] = 0
// inout F: int32[1] = 0
// out Y: int32[256]
// right: Y == np.tile(X[::-1], 4)
// broken 1: stale_read(read) -- no fence between the data and the flag
// broken 2: stale_read(read) -- no fence between the flag and the data
// broken 3: stale_read(read) -- the fence is for the block alone
// broken 4: stale_read(read) -- no fence at either end, and the flag is set by an atomic

extern "C" __global__ void KERNEL(const int* X, volatile int* D, int* F, int* Y) {
  volatile int* flag = F;
  const int i = threadIdx.x;
  if (blockIdx.x == 0) {
    D[i] = X[i];
    __syncthreads();
    if (i == 0) {
#if defined(BROKEN_3)
      __threadfence_block();
#elif !defined(BROKEN_1) && !defined(BROKEN_4)
      __threadfence();
#endif
#ifdef BROKEN_4
      atomicExch(F, 1);
#else
      *flag = 1;
#endif
    }
  }
  while (*flag == 0);
#if !defined(BROKEN_2) && !defined(BROKEN_4)
  __threadfence();
#endif
  Y[blockIdx.x * 64 + i] = D[63 - i];  // @read
}
