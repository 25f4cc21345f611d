// Three blocks announce their data by red.release; the fourth waits for all of them by ld.acquire.
// launch: grid=4 block=32
// in X: int32[96] = numbers(96)
// out P: int32[96]
// out Y: int32[32]
// right: Y == X.reshape(3, 32).sum(0)
// broken 1: race(put, get) -- red.relaxed
// broken 2: race(put, get) -- red.release of the block's scope
// broken 3: race(put, get) | order_dependent -- it waits for two of three (in some orders)
// broken 4: race(put, get) -- only lane 0 announces, and no __syncwarp is before it

__device__ unsigned arrived;

extern "C" __global__ void KERNEL(const int* X, int* P, int* Y) {
  const int t = threadIdx.x;
  if (blockIdx.x < 3) {
    P[blockIdx.x * 32 + t] = X[blockIdx.x * 32 + t];  // @put
#ifndef BROKEN_4
    __syncwarp();
#endif
    if (t == 0) {
#if defined BROKEN_1
      asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(&arrived) : "memory");
#elif defined BROKEN_2
      asm volatile("red.release.cta.global.add.u32 [%0], 1;" ::"l"(&arrived) : "memory");
#else
      asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&arrived) : "memory");
#endif
    }
    return;
  }
#ifdef BROKEN_3
  const unsigned awaited = 2;
#else
  const unsigned awaited = 3;
#endif
  unsigned seen;
  do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(&arrived) : "memory");
  while (seen < awaited);
  int sum = 0;
  for (int b = 0; b < 3; ++b) sum += P[b * 32 + t];  // @get
  Y[t] = sum;
}
