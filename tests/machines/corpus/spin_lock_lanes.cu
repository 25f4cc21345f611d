// The 32 lanes of a warp take one lock after another: each tries until it had its turn.
// launch: grid=2 block=32
// inout Y: int32[1] = 0
// right: Y == 2 * np.arange(32).sum()
// broken 1: race(update, update) and lockstep(update, update) -- no fence at either end
// broken 2: deadlock | endless_loop -- it is never given back

__device__ int lock;

extern "C" __global__ void KERNEL(int* Y) {
  bool done = false;
  while (!done) {
    if (atomicCAS(&lock, 0, 1) == 0) {
#ifndef BROKEN_1
      __threadfence();
#endif
      *Y += threadIdx.x;  // @update
#ifndef BROKEN_1
      __threadfence();
#endif
#ifndef BROKEN_2
      atomicExch(&lock, 0);
#endif
      done = true;
    }
  }
}
