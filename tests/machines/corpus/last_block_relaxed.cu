// Sums of blocks in volatile words, and a relaxed counter: the last block to count adds them up.
// launch: grid=6 block=64
// in X: int32[384] = numbers(384)
// inout P: int32[6] = 0
// inout C: uint32[1] = 0
// out Y: int32[2]
// right: Y == [X.sum(), 6]
// broken 1: stale_read(collect) -- no fence between a block's sum and its count
// broken 2: stale_read(collect) -- the thread that counts is the one that adds up, with no fence between

extern "C" __global__ void KERNEL(const int* X, volatile int* P, unsigned* C, int* Y) {
  __shared__ int s;
  __shared__ bool last;
  bool mine = false;
  const int i = threadIdx.x;
  if (i == 0) s = 0;
  __syncthreads();
  atomicAdd(&s, X[blockIdx.x * 64 + i]);
  __syncthreads();
  if (i == 0) {
    P[blockIdx.x] = s;
#ifndef BROKEN_1
    __threadfence();
#endif
    mine = atomicAdd(C, 1) == gridDim.x - 1;
    last = mine;
  }
#ifndef BROKEN_2
  __syncthreads();
  mine = last;
#endif
  if (i == 0 && mine) {
    int sum = 0;
    for (int k = 0; k < gridDim.x; ++k) sum += P[k];  // @collect
    Y[0] = sum;
    Y[1] = *(volatile unsigned*)C;
  }
}
