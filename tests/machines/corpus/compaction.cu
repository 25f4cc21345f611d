// Stream compaction: each lane that has something takes a place by an atomic counter.
// launch: grid=4 block=64
// in X: int32[256] = numbers(256)
// inout N: int32[1] = 0
// out Y: int32[256]
// right: N == (X > 40).sum()
// right: np.sort(Y[: N[0]]) == np.sort(X[X > 40])
// sound: may order_dependent
// broken 1: race(place, place) -- the counter is plain
// broken 2: overlapping_writes(store, store) | race(store, store) -- places are counted per block
// broken 3: race(count, read) -- a block reads the counter to see how many there are

extern "C" __global__ void KERNEL(const int* X, int* N, int* Y) {
#ifdef BROKEN_2
  __shared__ int places;
  if (threadIdx.x == 0) places = 0;
  __syncthreads();
#endif
  const int x = X[blockIdx.x * 64 + threadIdx.x];
  if (x > 40) {
#if defined BROKEN_1
    const int place = (*N)++;  // @place
#elif defined BROKEN_2
    const int place = atomicAdd(&places, 1);
#else
    const int place = atomicAdd(N, 1);  // @count
#endif
    Y[place] = x;  // @store
  }
#ifdef BROKEN_3
  if (threadIdx.x == 0 && *N == 0) Y[255] = 0;  // @read
#endif
}
