// Block 0 writes, block 1 sees its flag and sets another, block 2 sees that one and reads what block 0 wrote.
// launch: grid=3 block=32
// in X: int32[32] = numbers(32)
// out P: int32[32]
// out Y: int32[32]
// right: Y == X
// broken 1: race(put, get) -- block 1 does not fence between the two flags
// broken 2: race(put, get) -- block 2 does not fence
// broken 3: race(put, get) -- block 1 sets its flag without waiting
// broken 4: race(put, get) -- block 1 fences in the block's scope

__device__ volatile int first[32], second[32];

extern "C" __global__ void KERNEL(const int* X, int* P, int* Y) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    P[t] = X[t];  // @put
    __threadfence();
    first[t] = 1;
  } else if (blockIdx.x == 1) {
#ifndef BROKEN_3
    while (!first[t]) {
    }
#endif
#if defined BROKEN_4
    __threadfence_block();
#elif !defined BROKEN_1
    __threadfence();
#endif
    second[t] = 1;
  } else {
    while (!second[t]) {
    }
#ifndef BROKEN_2
    __threadfence();
#endif
    Y[t] = P[t];  // @get
  }
}
