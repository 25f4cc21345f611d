// Split-K: every block multiplies its part of K; the last block to arrive adds up the partial sums.
// launch: grid=4 block=64
// in X: int32[256] = numbers(256)
// in W: int32[256] = numbers(256, 50)
// out P: int32[256]
// out Y: int32[64]
// right: Y == (X * W).reshape(4, 64).sum(0)
// broken 1: race(partial, collect) -- no fence between the partial sum and the ticket
// broken 2: race(partial, collect) -- the fence is of the block's scope
// broken 3: race(partial, collect) -- no barrier between the partial sums and the ticket
// broken 4: race(ticket, ticket) -- the ticket is plain
// broken 5: race(partial, collect) -- the ticket is an atomic of the block's scope

__device__ unsigned arrived;

extern "C" __global__ void KERNEL(const int* X, const int* W, int* P, int* Y) {
  __shared__ bool last;
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  P[i] = X[i] * W[i];  // @partial
#if defined BROKEN_2
  __threadfence_block();
#elif !defined BROKEN_1
  __threadfence();
#endif
#ifndef BROKEN_3
  __syncthreads();
#endif
  if (t == 0) {
#if defined BROKEN_4
    last = arrived++ == gridDim.x - 1;  // @ticket
#elif defined BROKEN_5
    last = atomicAdd_block(&arrived, 1) == gridDim.x - 1;
#else
    last = atomicAdd(&arrived, 1) == gridDim.x - 1;
#endif
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  int sum = 0;
  for (int k = 0; k < gridDim.x; ++k) sum += P[k * blockDim.x + t];  // @collect
  Y[t] = sum;
}
