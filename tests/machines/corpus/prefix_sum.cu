// A prefix sum of a block in two buffers: each step reads one and writes the other.
// launch: grid=2 block=128
// in X: int32[256] = numbers(256)
// out Y: int32[256]
// right: Y.reshape(2, 128) == np.cumsum(X.reshape(2, 128), axis=1)
// broken 1: race(put, get) -- no barrier between steps
// broken 2: race(put, get) -- one buffer, and one barrier per step
// broken 3: race(fill, get) -- no barrier before the first step

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int s[2][128];
  const int t = threadIdx.x;
  int from = 0;
  s[from][t] = X[blockIdx.x * 128 + t];  // @fill
#ifndef BROKEN_3
  __syncthreads();
#endif
  for (int d = 1; d < 128; d *= 2) {
#ifdef BROKEN_2
    const int to = from;
#else
    const int to = 1 - from;
#endif
    int sum = s[from][t];
    if (t >= d) sum += s[from][t - d];  // @get
    s[to][t] = sum;                     // @put
#ifndef BROKEN_1
    __syncthreads();
#endif
    from = to;
  }
  Y[blockIdx.x * 128 + t] = s[from][t];
}
