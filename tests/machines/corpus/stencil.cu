// Steps of a stencil in shared memory, in place: read, barrier, write, barrier.
// launch: grid=2 block=64
// in X: int32[128] = numbers(128)
// out Y: int32[128]
// right: Y.reshape(2, 64) == sum(np.roll(X.reshape(2, 64), -k, axis=1) * [1, 3, 3, 1][k] for k in range(4))
// broken 1: race(put, get) -- no barrier after writing
// broken 2: race(put, get) -- no barrier between reading and writing
// broken 3: race(put, get) -- one barrier per two steps

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = X[blockIdx.x * 64 + t];
  __syncthreads();
#pragma unroll 1
  for (int k = 0; k < 3; ++k) {
    const int x = s[t] + s[(t + 1) % 64];  // @get
#ifndef BROKEN_2
    __syncthreads();
#endif
    s[t] = x;  // @put
#ifdef BROKEN_3
    if (k % 2)
#endif
#ifndef BROKEN_1
      __syncthreads();
#endif
  }
  Y[blockIdx.x * 64 + t] = s[t];
}
