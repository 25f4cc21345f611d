// Tiles go through two buffers with one barrier per tile: the next is written while this one is read.
// launch: grid=2 block=64
// in X: int32[1024] = numbers(1024)
// out Y: int32[128]
// right: Y.reshape(2, 64) == (X.reshape(2, 8, 64)[:, :, ::-1] * np.arange(1, 9)[None, :, None]).sum(1)
// broken 1: race(put, get) -- one buffer only
// broken 2: race(put, get) -- no barrier
// broken 3: race(put, get) -- it reads the buffer that is being written
// broken 4: race(put, get) -- the barrier stands between reading and writing

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int s[2][64];
  const int t = threadIdx.x;
  const int* from = X + blockIdx.x * 512 + t;
  s[0][t] = from[0];  // @put
  __syncthreads();
  int sum = 0;
#pragma unroll 1
  for (int k = 0; k < 8; ++k) {
#if defined BROKEN_1
    const int now = 0, next = 0;
#elif defined BROKEN_3
    const int now = (k + 1) % 2, next = (k + 1) % 2;
#else
    const int now = k % 2, next = (k + 1) % 2;
#endif
    const int ahead = k < 7 ? from[(k + 1) * 64] : 0;
    sum += (k + 1) * s[now][63 - t];  // @get
#ifdef BROKEN_4
    __syncthreads();
#endif
    s[next][t] = ahead;  // @put
#if !defined BROKEN_2 && !defined BROKEN_4
    __syncthreads();
#endif
  }
  Y[blockIdx.x * 64 + t] = sum;
}
