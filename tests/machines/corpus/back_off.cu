// A waiting block sleeps longer and longer between its looks at the flag.
// launch: grid=3 block=32
// in X: int32[32] = numbers(32)
// out P: int32[32]
// out Y: int32[64]
// right: Y.reshape(2, 32) == X + 2
// broken 1: race(put, get) -- it sleeps once instead of looking
// broken 2: deadlock(look) | endless_loop(look) -- nobody sets the flag to what is waited for
// broken 3: race(put, get) | order_dependent -- it gives up after three looks (in some orders)

__device__ int flag;

extern "C" __global__ void KERNEL(const int* X, int* P, int* Y) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    P[t] = X[t] + 2;  // @put
    __threadfence();
    __syncwarp();
    if (t == 0) atomicExch(&flag, 1);
    return;
  }
#if defined BROKEN_1
  __nanosleep(1000000);
#else
#ifdef BROKEN_2
  const int awaited = 2, until = 1 << 30;
#elif defined BROKEN_3
  const int awaited = 1, until = 3;
#else
  const int awaited = 1, until = 1 << 30;
#endif
  unsigned pause = 8;
  for (int looks = 0; looks < until && *(volatile int*)&flag != awaited; ++looks) {  // @look
    __nanosleep(pause);
    pause = min(2 * pause, 256u);
  }
#endif
  __threadfence();
  Y[(blockIdx.x - 1) * 32 + t] = P[t];  // @get
}
