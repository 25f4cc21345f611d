// A barrier of the grid by hand: a counter that thread 0 of every block raises and then watches.
// launch: grid=4 block=64
// in X: int32[256] = numbers(256)
// out P: int32[256]
// out Y: int32[256]
// right: Y == 2 * np.roll(X, -64)
// broken 1: race(put, get) -- no barrier of the block before the counter is raised
// broken 2: race(put, get) -- no fence before the counter is raised
// broken 3: race(put, get) -- no barrier of the block after the wait
// broken 4: deadlock(wait) -- it waits for one block more than there are
// broken 5: race(put, get) | order_dependent -- it waits for one block less than there are (in some orders)
// broken 6: race(put, get) -- the counter is raised in the block's scope
// broken 7: race(raise, raise); may deadlock, endless_loop -- the counter is raised without an atomic

__device__ unsigned count;

extern "C" __global__ void KERNEL(const int* X, int* P, int* Y) {
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  P[i] = 2 * X[i];  // @put
#ifndef BROKEN_1
  __syncthreads();
#endif
#if defined BROKEN_4
  const unsigned expected = gridDim.x + 1;
#elif defined BROKEN_5
  const unsigned expected = gridDim.x - 1;
#else
  const unsigned expected = gridDim.x;
#endif
  if (t == 0) {
#ifndef BROKEN_2
    __threadfence();
#endif
#if defined BROKEN_6
    atomicAdd_block(&count, 1);
#elif defined BROKEN_7
    ++count;  // @raise
#else
    atomicAdd(&count, 1);
#endif
    while (*(volatile unsigned*)&count < expected) {  // @wait
    }
    __threadfence();
  }
#ifndef BROKEN_3
  __syncthreads();
#endif
  Y[i] = P[(i + 64) % 256];  // @get
}
