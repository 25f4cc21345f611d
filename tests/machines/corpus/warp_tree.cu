// A warp sums 64 values in shared memory, with a __syncwarp after each read and each write.
// launch: grid=2 block=32
// in X: int32[128] = numbers(128)
// out Y: int32[2]
// right: Y == X.reshape(2, 64).sum(1)
// broken 1: lockstep(write, read) -- no __syncwarp after a write
// broken 2: lockstep(write, read) -- no __syncwarp between a read and the next write
// broken 3: lockstep(fill, read) -- no __syncwarp before the first step
// broken 4: lockstep(write, read) -- no __syncwarp at all, volatile alone

extern "C" __global__ void KERNEL(const int* X, int* Y) {
#ifdef BROKEN_4
  __shared__ volatile int s[64];
#else
  __shared__ int s[64];
#endif
  const int t = threadIdx.x;
  s[31 - t] = X[blockIdx.x * 64 + t];       // @fill
  s[63 - t] = X[blockIdx.x * 64 + t + 32];  // @fill
#if !defined BROKEN_3 && !defined BROKEN_4
  __syncwarp();
#endif
  int sum = s[t];
  for (int half = 32; half > 0; half /= 2) {
    sum += s[t + half];  // @read
#if !defined BROKEN_2 && !defined BROKEN_4
    __syncwarp();
#endif
    s[t] = sum;  // @write
#if !defined BROKEN_1 && !defined BROKEN_4
    __syncwarp();
#endif
  }
  if (t == 0) Y[blockIdx.x] = sum;
}
