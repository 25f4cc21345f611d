// A barrier of the grid for several rounds: the last to arrive resets the counter and raises the generation.
// launch: grid=3 block=32
// in X: int32[96] = numbers(96)
// out P: int32[192]
// out Y: int32[96]
// right: Y == np.roll(X, -4 * 32)
// broken 1: race(put, get) -- nobody fences on arrival
// broken 2: deadlock(wait) -- the counter is not reset
// broken 3: race(put, get) -- one buffer for what is read and what is written

__device__ unsigned count;
__device__ volatile unsigned generation;

__device__ void meet() {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned mine = generation;
#ifndef BROKEN_1
    __threadfence();
#endif
    if (atomicAdd(&count, 1) == gridDim.x - 1) {
      __threadfence();
#ifndef BROKEN_2
      count = 0;
#endif
      __threadfence();
      generation = mine + 1;
    } else {
      while (generation == mine) {
      }
    }
    __threadfence();
  }
  __syncthreads();
}

extern "C" __global__ void KERNEL(const int* X, int* P, int* Y) {
  const int t = threadIdx.x, b = blockIdx.x;
  int from = 0;
  P[b * 32 + t] = X[b * 32 + t];
  for (int round = 0; round < 4; ++round) {
    meet();  // @wait
#ifdef BROKEN_3
    const int to = from;
#else
    const int to = 96 - from;
#endif
    P[to + b * 32 + t] = P[from + (b + 1) % 3 * 32 + t];  // @put, @get
    from = to;
  }
  meet();
  Y[b * 32 + t] = P[from + b * 32 + t];
}
