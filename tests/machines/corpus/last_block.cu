// Thread 0 stores its block's sum and takes a ticket; the last block adds up the sums, read as volatile.
// launch: grid=4 block=64
// in X: int32[256] = numbers(256)
// out P: int32[4]
// out Y: int32[1]
// right: Y == X.sum()
// broken 1: race(partial, collect) -- no fence between the block's sum and the ticket
// broken 2: race(partial, collect) -- the last block but one believes it is the last
// broken 3: race(put, tree) -- no barrier between filling shared memory and the first step
// broken 4: race(decide, ask) -- no barrier between setting `last` and asking for it

__device__ unsigned arrived;

extern "C" __global__ void KERNEL(const int* X, volatile int* P, int* Y) {
  __shared__ int s[64];
  __shared__ bool last;
  const int t = threadIdx.x;
  s[t] = X[blockIdx.x * 64 + t];  // @put
#ifndef BROKEN_3
  __syncthreads();
#endif
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) s[t] += s[t + half];  // @tree
    __syncthreads();
  }
  if (t == 0) {
    *(int*)&P[blockIdx.x] = s[0];  // @partial
#ifndef BROKEN_1
    __threadfence();
#endif
    const unsigned ticket = atomicInc(&arrived, gridDim.x - 1);
#ifdef BROKEN_2
    last = ticket == gridDim.x - 2;
#else
    last = ticket == gridDim.x - 1;  // @decide
#endif
  }
#ifndef BROKEN_4
  __syncthreads();
#endif
  if (last && t == 0) {  // @ask
    int sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += P[b];  // @collect
    *Y = sum;
  }
}
