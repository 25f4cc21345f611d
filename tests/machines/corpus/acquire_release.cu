// A block hands data to another by st.release and ld.acquire.
// launch: grid=2 block=64
// in X: int32[64] = numbers(64)
// out P: int32[64]
// out Y: int32[64]
// right: Y == X[::-1] + 1
// broken 1: race(put, get) -- the store of the flag is relaxed
// broken 2: race(put, get) -- the load of the flag is relaxed, and nobody waits for the one who loads
// broken 3: race(put, get) -- the release is of the block's scope
// broken 4: deadlock(poll) | endless_loop(poll) -- nobody stores what is waited for
// broken 5: race(put, get) -- no barrier between the data and the release
// broken 6: race(put, get) -- the acquire is of the block's scope, and nobody waits for the one who loads

__device__ unsigned flag;

__device__ unsigned load(unsigned* from) {
  unsigned value;
#if defined BROKEN_2
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
#elif defined BROKEN_6
  asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
#else
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
#endif
  return value;
}

__device__ void store(unsigned* to, unsigned value) {
#if defined BROKEN_1
  asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
#elif defined BROKEN_3
  asm volatile("st.release.cta.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
#else
  asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
#endif
}

extern "C" __global__ void KERNEL(const int* X, int* P, int* Y) {
  const int t = threadIdx.x;
#ifdef BROKEN_4
  const unsigned awaited = 2;
#else
  const unsigned awaited = 1;
#endif
  if (blockIdx.x == 0) {
    P[t] = X[t] + 1;  // @put
#ifndef BROKEN_5
    __syncthreads();
#endif
    if (t == 0) store(&flag, 1);
  } else {
    while (load(&flag) != awaited) {  // @poll
    }
    Y[t] = P[63 - t];  // @get
  }
}
