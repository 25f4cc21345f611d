// The threads of a block exchange data through global memory, with __syncthreads between.
// launch: grid=2 block=128
// in X: int32[256] = numbers(256)
// out P: int32[256]
// out Y: int32[256]
// right: Y == X.reshape(2, 128)[:, ::-1].reshape(256) * 2
// broken 1: race(put, get) -- no barrier
// broken 2: race(put, get) -- a fence instead of a barrier
// broken 3: race(put, get) -- a barrier of the warp instead
// broken 4: race(get, again) -- no barrier before the memory is written again
// broken 5: race(put, get) -- the barrier comes before the store

extern "C" __global__ void KERNEL(const int* X, int* P, int* Y) {
  const int t = threadIdx.x, i = blockIdx.x * 128 + t;
#ifdef BROKEN_5
  __syncthreads();
#endif
  P[i] = X[i];  // @put
#if defined BROKEN_2
  __threadfence();
#elif defined BROKEN_3
  __syncwarp();
#elif !defined BROKEN_1 && !defined BROKEN_5
  __syncthreads();
#endif
  const int x = P[blockIdx.x * 128 + 127 - t];  // @get
#ifndef BROKEN_4
  __syncthreads();
#endif
  P[i] = x * 2;  // @again
  Y[i] = P[i];
}
