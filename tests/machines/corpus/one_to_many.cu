// One warp produces for three: they wait at a named barrier of the whole block, it only arrives.
// launch: grid=2 block=128
// in X: int32[64] = numbers(64)
// out Y: int32[192]
// right: Y.reshape(2, 3, 32) == X.reshape(2, 1, 32)[:, :, ::-1] * [[[1], [2], [3]]]
// broken 1: race(put, get) | deadlock(full) | divergent_barrier(full) -- it counts two of three that wait
// broken 2: race(put, get) -- the producer arrives before it has produced
// broken 3: deadlock(full) | divergent_barrier(full) -- one of the three is not there
// broken 4: race(put, get) -- one of the three does not wait

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int s[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (warp == 0) {
#ifdef BROKEN_2
    asm volatile("bar.arrive 5, 128;" ::: "memory");
#endif
    s[lane] = X[blockIdx.x * 32 + lane];  // @put
#if defined BROKEN_1
    asm volatile("bar.arrive 5, 96;" ::: "memory");
#elif defined BROKEN_4
    asm volatile("bar.arrive 5, 96;" ::: "memory");
#elif !defined BROKEN_2
    asm volatile("bar.arrive 5, 128;" ::: "memory");
#endif
    return;
  }
#ifdef BROKEN_3
  if (warp == 2) return;
#endif
#if defined BROKEN_1
  asm volatile("bar.sync 5, 96;" ::: "memory");  // @full
#elif defined BROKEN_4
  if (warp != 3) asm volatile("bar.sync 5, 96;" ::: "memory");
#else
  asm volatile("bar.sync 5, 128;" ::: "memory");  // @full
#endif
  Y[(blockIdx.x * 3 + warp - 1) * 32 + lane] = s[31 - lane] * warp;  // @get
}
