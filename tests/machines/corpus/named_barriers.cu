// Two warps produce, two consume: bar.arrive of one side meets bar.sync of the other.
// launch: grid=2 block=128
// in X: int32[128] = numbers(128)
// out Y: int32[128]
// right: Y == X.reshape(2, 64)[:, ::-1].reshape(128) + 5
// broken 1: race(put, get) -- the consumers wait at another barrier than the producers arrive at
// broken 2: deadlock(full) | divergent_barrier(full) -- the barrier counts one warp more than come
// broken 3: race(put, get) | deadlock(short) | divergent_barrier(short) -- it counts one warp less than come
// broken 4: race(put, get) -- the consumers do not wait
// broken 5: deadlock(full) | divergent_barrier(full) -- the producers do not arrive

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int s[64];
  const int t = threadIdx.x % 64, i = blockIdx.x * 64 + t;
  if (threadIdx.x < 64) {
    s[t] = X[i] + 5;  // @put
#if defined BROKEN_1
    asm volatile("bar.arrive 1, 64;" ::: "memory");
#elif defined BROKEN_2
    asm volatile("bar.arrive 1, 160;" ::: "memory");
#elif defined BROKEN_3
    asm volatile("bar.arrive 1, 96;" ::: "memory");
#elif !defined BROKEN_5
    asm volatile("bar.arrive 1, 128;" ::: "memory");
#endif
  } else {
#if defined BROKEN_1
    asm volatile("bar.sync 2, 64;" ::: "memory");
#elif defined BROKEN_2
    asm volatile("bar.sync 1, 160;" ::: "memory");  // @full
#elif defined BROKEN_3
    asm volatile("bar.sync 1, 96;" ::: "memory");  // @short
#elif !defined BROKEN_4
    asm volatile("bar.sync 1, 128;" ::: "memory");  // @full
#endif
    Y[i] = s[63 - t];  // @get
  }
}
