// A ring of two stages between a producing and a consuming warp: barriers say full and empty, per stage.
// launch: grid=1 block=64
// in X: int32[256] = numbers(256)
// out Y: int32[32]
// right: Y == X.reshape(8, 32)[:, ::-1].sum(0)
// broken 1: race(put, get) | deadlock | divergent_barrier -- the producer does not wait for an empty stage
// broken 2: race(put, get) -- the consumer says empty before it has read
// broken 3: race(put, get) -- the consumer reads the other stage
// broken 4: deadlock | divergent_barrier -- the consumer never says empty

__device__ void wait(int barrier) { asm volatile("bar.sync %0, 64;" ::"r"(barrier) : "memory"); }
__device__ void arrive(int barrier) { asm volatile("bar.arrive %0, 64;" ::"r"(barrier) : "memory"); }

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int stages[2][32];
  const int t = threadIdx.x % 32;
  const int full = 1, empty = 3;
  if (threadIdx.x < 32) {
    for (int k = 0; k < 8; ++k) {
#ifndef BROKEN_1
      if (k >= 2) wait(empty + k % 2);
#endif
      stages[k % 2][t] = X[k * 32 + t];  // @put
      arrive(full + k % 2);
    }
  } else {
    int sum = 0;
    for (int k = 0; k < 8; ++k) {
      wait(full + k % 2);
#ifdef BROKEN_2
      if (k < 6) arrive(empty + k % 2);
#endif
#ifdef BROKEN_3
      sum += stages[(k + 1) % 2][31 - t];  // @get
#else
      sum += stages[k % 2][31 - t];  // @get
#endif
#if !defined BROKEN_1 && !defined BROKEN_2 && !defined BROKEN_4
      if (k < 6) arrive(empty + k % 2);
#endif
    }
    Y[t] = sum;
  }
}
