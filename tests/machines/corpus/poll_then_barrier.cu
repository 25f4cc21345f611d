// Thread 0 watches the flag of another block; behind a barrier all threads read what that block left.
// launch: grid=2 block=64
// in X: int32[64] = numbers(64)
// out P: int32[64]
// out Y: int32[64]
// right: Y == X[::-1]
// broken 1: race(put, get) -- no barrier after the wait
// broken 2: race(put, get) -- the writer has no barrier before its flag
// broken 3: race(put, get) -- the writer does not fence
// broken 4: race(put, get) | order_dependent -- thread 0 looks once, and does not wait (in some orders)
// broken 5: deadlock(poll) | endless_loop(poll) -- the writer forgets the flag

__device__ int flag;

extern "C" __global__ void KERNEL(const int* X, int* P, int* Y) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    P[t] = X[t];  // @put
#ifndef BROKEN_3
    __threadfence();
#endif
#ifndef BROKEN_2
    __syncthreads();
#endif
#ifndef BROKEN_5
    if (t == 0) atomicExch(&flag, 1);
#endif
    return;
  }
  if (t == 0) {
#ifdef BROKEN_4
    if (*(volatile int*)&flag) Y[t] = 0;
#else
    while (*(volatile int*)&flag == 0) {  // @poll
    }
#endif
  }
#ifndef BROKEN_1
  __syncthreads();
#endif
  Y[t] = P[63 - t];  // @get
}
