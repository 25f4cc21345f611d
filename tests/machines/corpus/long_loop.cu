// One thread works long without touching memory, and the others wait for it at a barrier: no endless loop.
// launch: grid=1 block=64
// out Y: int32[64]
// right: Y == 1000000 * 3 + np.arange(64)
// broken 1: endless_loop(work); may deadlock -- the condition never becomes false
// broken 2: endless_loop(spin); may deadlock -- for (;;)

extern "C" __global__ void KERNEL(int* Y) {
  __shared__ unsigned left;
  const int t = threadIdx.x;
  if (t == 0) {
    unsigned state = 1, turns = 0;
#ifdef BROKEN_1
    while (state != 2) {  // @work
#else
    while (turns < 100000) {  // @work
#endif
      state = state * 1664525u + 1013904222u + (state & 1);  // @work
      asm volatile("" : "+r"(state));                        // @work
      turns += 1;
    }
#ifdef BROKEN_2
    for (;;) asm volatile("");  // @spin
#endif
    left = turns + (state == 1);
  }
  __syncthreads();
  Y[t] = left * 30 + t;
}
