// Two warps take turns at a piece of shared memory: each opens the other's barrier when it is done.
// launch: grid=2 block=64
// out Y: int32[64]
// right: Y.reshape(2, 32) == 12 + 2 * np.arange(32)
// broken 1: race(update, update) | deadlock | divergent_barrier -- the second warp does not wait
// broken 2: deadlock | divergent_barrier -- nobody opens the first turn
// broken 3: race(update, update) -- both open the other's turn before their own is done
// broken 4: race(update, update) | deadlock | divergent_barrier -- both wait at the same barrier

__device__ void wait(int barrier) { asm volatile("bar.sync %0, 64;" ::"r"(barrier) : "memory"); }
__device__ void open(int barrier) { asm volatile("bar.arrive %0, 64;" ::"r"(barrier) : "memory"); }

extern "C" __global__ void KERNEL(int* Y) {
  __shared__ int s[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (warp == 1) {
    s[31 - lane] = 2 * (31 - lane);
#ifndef BROKEN_2
    open(1);
#endif
  }
#pragma unroll 1
  for (int round = 0; round < 4; ++round) {
#if defined BROKEN_1
    if (warp == 0) wait(1);
#elif defined BROKEN_4
    wait(1);
#else
    wait(1 + warp);
#endif
#ifdef BROKEN_3
    if (warp == 0 || round < 3) open(2 - warp);
#endif
    s[lane] += 1 + warp;  // @update
#if !defined BROKEN_1 && !defined BROKEN_3
    if (warp == 0 || round < 3) open(2 - warp);
#elif defined BROKEN_1
    if (warp == 1 && round < 3) open(1);
#endif
  }
  if (warp == 1) Y[blockIdx.x * 32 + lane] = s[lane];
}
