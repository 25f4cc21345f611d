// A block hands data to another by relaxed accesses with fence.acq_rel beside them.
// launch: grid=2 block=32
// in X: int32[32] = numbers(32)
// out P: int32[32]
// out Y: int32[32]
// right: Y == X + 1
// broken 1: race(put, get) -- the writer's fence is of the block's scope
// broken 2: race(put, get) -- the reader's fence is of the block's scope
// broken 3: race(put, get) -- the flag is stored in the block's scope
// broken 4: race(put, get) -- no fence of the writer
// broken 5: race(put, get) -- no fence of the reader

__device__ unsigned flags[32];

extern "C" __global__ void KERNEL(const int* X, int* P, int* Y) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    P[t] = X[t] + 1;  // @put
#if defined BROKEN_1
    asm volatile("fence.acq_rel.cta;" ::: "memory");
#elif !defined BROKEN_4
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
#ifdef BROKEN_3
    asm volatile("st.relaxed.cta.u32 [%0], 1;" ::"l"(flags + t) : "memory");
#else
    asm volatile("st.relaxed.gpu.u32 [%0], 1;" ::"l"(flags + t) : "memory");
#endif
    return;
  }
  unsigned seen;
  do asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(flags + t) : "memory");
  while (!seen);
#if defined BROKEN_2
  asm volatile("fence.acq_rel.cta;" ::: "memory");
#elif !defined BROKEN_5
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
  Y[t] = P[t];  // @get
}
