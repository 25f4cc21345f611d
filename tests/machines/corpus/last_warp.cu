// The last warp of a block to arrive adds up what the warps left: a fence and a ticket in shared memory.
// launch: grid=2 block=128
// in X: int32[256] = numbers(256)
// out Y: int32[2]
// right: Y == X.reshape(2, 128).sum(1)
// broken 1: race(put, get) -- no fence before the ticket
// broken 2: race(put, get) -- no fence after the ticket
// broken 3: race(put, get) -- it takes itself for the last one too early
// broken 4: race(ticket, ticket) -- a plain ticket

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int sums[4];
  __shared__ unsigned arrived;
  const int t = threadIdx.x, warp = t / 32;
  if (t == 0) arrived = 0;
  __syncthreads();
  const int sum = __reduce_add_sync(0xffffffff, X[blockIdx.x * 128 + t]);
  if (t % 32) return;
  sums[warp] = sum;  // @put
#ifndef BROKEN_1
  __threadfence_block();
#endif
#ifdef BROKEN_4
  const unsigned ticket = arrived++;  // @ticket
#else
  const unsigned ticket = atomicAdd(&arrived, 1);
#endif
#ifdef BROKEN_3
  if (ticket != 2) return;
#else
  if (ticket != 3) return;
#endif
#ifndef BROKEN_2
  __threadfence_block();
#endif
  int total = 0;
  for (int w = 0; w < 4; ++w) total += sums[w];  // @get
  Y[blockIdx.x] = total;
}
