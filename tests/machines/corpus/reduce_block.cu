// A block's sum: shuffles in each warp, one word per warp in shared memory, shuffles in the first warp.
// launch: grid=4 block=128
// in X: int32[1024] = numbers(1024)
// out Y: int32[4]
// right: Y == X.reshape(2, 4, 128).sum((0, 2))
// broken 1: race(put, get) -- no barrier between the warps' sums and the first warp
// broken 2: race(put, get) -- no barrier between the two rounds
// broken 3: race(put, get) -- a barrier of the warp instead
// broken 4: divergent_barrier | deadlock -- the barrier is in a branch of one warp

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int sums[4];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int total = 0;
  for (int round = 0; round < 2; ++round) {
    int x = X[(round * gridDim.x + blockIdx.x) * 128 + t];
    for (int d = 16; d > 0; d /= 2) x += __shfl_down_sync(0xffffffff, x, d);
    if (lane == 0) sums[warp] = x;  // @put
#if defined BROKEN_3
    __syncwarp();
#elif defined BROKEN_4
    if (warp == 0) __syncthreads();
#elif !defined BROKEN_1
    __syncthreads();
#endif
    if (warp == 0) {
      int y = lane < 4 ? sums[lane] : 0;  // @get
      for (int d = 2; d > 0; d /= 2) y += __shfl_down_sync(0xffffffff, y, d);
      total += y;
    }
#if !defined BROKEN_2
    __syncthreads();
#endif
  }
  if (t == 0) Y[blockIdx.x] = total;
}
