// A lock between blocks: atomicCAS takes it, atomicExch gives it back, fences on both sides.
// launch: grid=6 block=32
// inout Y: int32[2] = 0
// right: Y == [6, 21]
// broken 1: race(update, update) -- no fence after the lock is taken
// broken 2: race(update, update) -- no fence before it is given back
// broken 3: deadlock(take) | endless_loop(take) -- it is never given back
// broken 4: race(take, give) -- it is given back by a plain store
// broken 5: race(update, update) -- the update is outside the lock
// broken 6: race(update, update) -- the fences are of the block's scope

__device__ int lock;

__device__ void fence() {
#ifdef BROKEN_6
  __threadfence_block();
#else
  __threadfence();
#endif
}

extern "C" __global__ void KERNEL(int* Y) {
  if (threadIdx.x) return;
  while (atomicCAS(&lock, 0, 1) != 0) {  // @take
  }
#ifndef BROKEN_1
  fence();
#endif
#ifndef BROKEN_5
  Y[0] += 1;                // @update
  Y[1] += blockIdx.x + 1;   // @update
#endif
#ifndef BROKEN_2
  fence();
#endif
#if defined BROKEN_4
  asm volatile("st.global.u32 [%0], 0;" ::"l"(&lock) : "memory");  // @give
#elif !defined BROKEN_3
  atomicExch(&lock, 0);
#endif
#ifdef BROKEN_5
  Y[0] += 1;                // @update
  Y[1] += blockIdx.x + 1;   // @update
#endif
}
