// Two blocks exclude each other by flags and a turn; fence.sc stands between the own store and the look.
// launch: grid=2 block=32
// inout Y: int32[1] = 0
// right: Y == 6
// broken 1: race(update, update) -- no fence before leaving
// broken 2: race(update, update) -- they do not look at each other
// broken 3: race(turn, turn) and race(update, update); may deadlock, endless_loop -- flags and turn are plain
// broken 4: deadlock(wait) | endless_loop(wait) -- nobody leaves

__device__ int wants[2], turn;

__device__ void store(int* to, int value) {
#ifdef BROKEN_3
  asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
#else
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
#endif
}
__device__ int load(const int* from) {
  int value;
#ifdef BROKEN_3
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
#else
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
#endif
  return value;
}

extern "C" __global__ void KERNEL(int* Y) {
  if (threadIdx.x) return;
  const int me = blockIdx.x;
  for (int round = 0; round < 3; ++round) {
    store(wants + me, 1);  // @turn
    store(&turn, 1 - me);  // @turn
    asm volatile("fence.sc.gpu;" ::: "memory");
#ifndef BROKEN_2
    while (load(wants + 1 - me) && load(&turn) == 1 - me) {  // @wait, @turn
    }
#endif
    asm volatile("fence.sc.gpu;" ::: "memory");
    *Y += 1;  // @update
#ifndef BROKEN_1
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
#ifndef BROKEN_4
    store(wants + me, 0);
#endif
  }
}
