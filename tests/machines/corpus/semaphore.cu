// At most two blocks at a time use one of two places: a counting semaphore, and the places' own locks.
// launch: grid=6 block=32
// inout Y: int32[2] = 0
// right: Y.sum() == 21
// sound: may order_dependent
// broken 1: race(use, use) -- the places have no locks (in some orders)
// broken 2: deadlock(enter) | endless_loop(enter) -- nobody leaves
// broken 3: race(use, use) -- the places' locks are freed before the use (in some orders)

__device__ int inside = 2, locks[2];

extern "C" __global__ void KERNEL(int* Y) {
  if (threadIdx.x) return;
  for (;;) {  // @enter
    const int free = *(volatile int*)&inside;                           // @enter
    if (free > 0 && atomicCAS(&inside, free, free - 1) == free) break;  // @enter
  }
  __threadfence();
#ifdef BROKEN_1
  const int place = blockIdx.x % 2;
#else
  int place = 0;
  while (atomicCAS(locks + place, 0, 1) != 0) place = 1 - place;
#endif
  __threadfence();
#ifdef BROKEN_3
  atomicExch(locks + place, 0);
#endif
  Y[place] += blockIdx.x + 1;  // @use
  __threadfence();
#if !defined BROKEN_1 && !defined BROKEN_3
  atomicExch(locks + place, 0);
#endif
#ifndef BROKEN_2
  atomicAdd(&inside, 1);
#endif
}
