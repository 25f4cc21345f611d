// Every lane of a block hands its value to a lane of another block: a volatile flag, fences on both sides.
// launch: grid=2 block=64
// in X: int32[64] = numbers(64)
// out P: int32[64]
// out Y: int32[64]
// right: Y == X * 3
// broken 1: race(put, get) -- no fence of the writer
// broken 2: race(put, get) -- no fence of the reader
// broken 3: race(flag, poll) and race(put, get) -- the flag is plain
// broken 4: race(put, get) -- the writer's fence is of the block's scope
// broken 5: race(put, get) -- the fence comes after the flag
// broken 6: race(put, get) -- it watches its neighbour's flag
// broken 7: race(flag, poll) and race(put, get) -- only the store of the flag is plain
// broken 8: race(put, get) -- it does not wait at all

__device__ int flags[64];

extern "C" __global__ void KERNEL(const int* X, int* P, int* Y) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    P[t] = X[t] * 3;  // @put
#if defined BROKEN_4
    __threadfence_block();
#elif !defined BROKEN_1 && !defined BROKEN_5
    __threadfence();
#endif
#if defined BROKEN_3 || defined BROKEN_7
    asm volatile("st.global.u32 [%0], 1;" ::"l"(flags + t) : "memory");  // @flag
#else
    ((volatile int*)flags)[t] = 1;
#endif
#ifdef BROKEN_5
    __threadfence();
#endif
    return;
  }
#if defined BROKEN_3
  int seen;
  do asm volatile("ld.global.u32 %0, [%1];" : "=r"(seen) : "l"(flags + t) : "memory");  // @poll
  while (!seen);
#elif defined BROKEN_6
  while (!((volatile int*)flags)[t ^ 1]) {
  }
#elif !defined BROKEN_8
  while (!((volatile int*)flags)[t]) {  // @poll
  }
#endif
#ifndef BROKEN_2
  __threadfence();
#endif
  Y[t] = P[t];  // @get
}
