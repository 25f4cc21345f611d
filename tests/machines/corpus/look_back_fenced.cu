// A prefix sum over blocks: each waits for the block before it. Values and flags are apart, with fences.
// launch: grid=8 block=32
// in X: int32[256] = numbers(256)
// out Y: int32[256]
// right: Y == np.cumsum(X)
// broken 1: race(value, use) -- no fence between value and flag
// broken 2: race(value, use) -- no fence between the flag that was seen and the value
// broken 3: race(value, use) -- the writer's fence is of the block's scope
// broken 4: race(value, use) -- the reader's fence is of the block's scope
// broken 5: race(flag, poll) and race(value, use) -- the flag is plain
// broken 6: race(value, use) -- the flag is set before the value

__device__ int values[8], flags[8];
__device__ unsigned tickets;

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int tile, before;
  const int t = threadIdx.x;
  if (t == 0) tile = atomicAdd(&tickets, 1);
  __syncthreads();
  int sum = X[tile * 32 + t];
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(0xffffffff, sum, d);
    if (t >= d) sum += other;
  }
  const int total = __shfl_sync(0xffffffff, sum, 31);
  if (t == 0) {
    int found = 0;
    if (tile > 0) {
#ifdef BROKEN_5
      int seen;
      do asm volatile("ld.global.u32 %0, [%1];" : "=r"(seen) : "l"(flags + tile - 1) : "memory");  // @poll
      while (!seen);
#else
      while (!((volatile int*)flags)[tile - 1]) {
      }
#endif
#if defined BROKEN_4
      __threadfence_block();
#elif !defined BROKEN_2
      __threadfence();
#endif
      found = values[tile - 1];  // @use
    }
#ifdef BROKEN_6
    __threadfence();
    ((volatile int*)flags)[tile] = 1;
#endif
    values[tile] = found + total;  // @value
#if defined BROKEN_3
    __threadfence_block();
#elif !defined BROKEN_1
    __threadfence();
#endif
#if defined BROKEN_5
    asm volatile("st.global.u32 [%0], 1;" ::"l"(flags + tile) : "memory");  // @flag
#elif !defined BROKEN_6
    ((volatile int*)flags)[tile] = 1;
#endif
    before = found;
  }
  __syncthreads();
  Y[tile * 32 + t] = before + sum;
}
