// Each block makes a row out of the row above, as soon as the element above and to the right is there.
// launch: grid=4 block=32
// in X: int32[128] = numbers(128, 5)
// out T: int32[128]
// out Y: int32[128]
// right: Y == T
// right: T[32:] == X[32:] + T[:96].reshape(4 - 1, 32)[:, np.minimum(np.arange(32) + 1, 31)].reshape(96)
// right: T[:32] == X[:32]
// broken 1: race(make, above) | order_dependent -- it waits for the element above only (in some orders)
// broken 2: race(make, above) -- progress is stored relaxed
// broken 3: deadlock(wait) | endless_loop(wait) -- it waits for one element more than there are

__device__ int made[5];

extern "C" __global__ void KERNEL(const int* X, int* T, int* Y) {
  const int b = blockIdx.x;
  if (threadIdx.x) return;
  for (int k = 0; k < 32; ++k) {
    int x = X[b * 32 + k];
    if (b > 0) {
#if defined BROKEN_1
      const int awaited = k + 1;
#elif defined BROKEN_3
      const int awaited = k + 2;
#else
      const int awaited = min(k + 2, 32);
#endif
      int seen;
      const int* there = made + b - 1;
      do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(there) : "memory");  // @wait
      while (seen < awaited);  // @wait
      x += T[b * 32 - 32 + min(k + 1, 31)];  // @above
    }
    T[b * 32 + k] = x;  // @make
    Y[b * 32 + k] = x;
#ifdef BROKEN_2
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(made + b), "r"(k + 1) : "memory");
#else
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(made + b), "r"(k + 1) : "memory");
#endif
  }
}
