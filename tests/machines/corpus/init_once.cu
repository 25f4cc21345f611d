// The first block to come fills a table; the others wait until it says that the table is ready.
// launch: grid=4 block=32
// in X: int32[32] = numbers(32)
// out T: int32[32]
// out Y: int32[128]
// right: Y.reshape(4, 32) == X[::-1] + 1
// broken 1: race(fill, use) | order_dependent -- the others do not wait (in some orders)
// broken 2: race(fill, use) -- no fence before the table is called ready
// broken 3: race(fill, use) | overlapping_writes(fill, fill) -- every block thinks it is the first
// broken 4: deadlock(wait) | endless_loop(wait) -- the first one never says that the table is ready

__device__ int state;

extern "C" __global__ void KERNEL(const int* X, int* T, int* Y) {
  const int t = threadIdx.x;
  int before = 0;
  if (t == 0) before = atomicCAS(&state, 0, 1);
#ifdef BROKEN_3
  before = 0;
#endif
  before = __shfl_sync(0xffffffff, before, 0);
  if (before == 0) {
#ifdef BROKEN_3
    T[t] = X[t] + 1 + blockIdx.x;  // @fill
#else
    T[t] = X[t] + 1;  // @fill
#endif
#ifndef BROKEN_2
    __threadfence();
#endif
    __syncwarp();
#ifndef BROKEN_4
    if (t == 0) atomicExch(&state, 2);
#endif
  }
#ifndef BROKEN_1
  while (*(volatile int*)&state != 2) {  // @wait
  }
#endif
  __threadfence();
  Y[blockIdx.x * 32 + t] = T[31 - t];  // @use
}
