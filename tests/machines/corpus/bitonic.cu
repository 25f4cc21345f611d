// A bitonic sort in shared memory.
// launch: grid=2 block=64
// in X: int32[256] = numbers(256)
// out Y: int32[256]
// right: Y.reshape(2, 128) == np.sort(X.reshape(2, 128), axis=1)
// broken 1: race(swap, look) | race(swap, swap) -- no barrier after a step
// broken 2: race(fill, look) -- no barrier before the first step
// broken 3: race(swap, look) | race(swap, drain) -- barriers only for distances over a warp

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int s[128];
  const int t = threadIdx.x;
  s[127 - t] = X[blockIdx.x * 128 + t];      // @fill
  s[63 - t] = X[blockIdx.x * 128 + t + 64];  // @fill
#ifndef BROKEN_2
  __syncthreads();
#endif
  for (int size = 2; size <= 128; size *= 2) {
    for (int d = size / 2; d > 0; d /= 2) {
      const int low = 2 * t - (t & (d - 1));
      const int a = s[low], b = s[low + d];  // @look
      if ((a > b) == ((low & size) == 0)) {
        s[low] = b;      // @swap
        s[low + d] = a;  // @swap
      }
#if defined BROKEN_3
      if (d > 32) __syncthreads();
#elif !defined BROKEN_1
      __syncthreads();
#endif
    }
  }
  Y[blockIdx.x * 128 + t] = s[t];            // @drain
  Y[blockIdx.x * 128 + t + 64] = s[t + 64];  // @drain
}
