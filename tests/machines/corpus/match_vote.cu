// A histogram in which lanes with equal keys are found by match, and their leader counts for all.
// launch: grid=2 block=128
// in X: int32[256] = numbers(256, 8)
// inout Y: int32[8] = 0
// out Z: int32[8]
// right: Y == np.bincount(X, minlength=8)
// right: Z == (X.reshape(8, 32) == 3).any(1)
// broken 1: race(count, count) -- the leader counts without an atomic

extern "C" __global__ void KERNEL(const int* X, int* Y, int* Z) {
  const int i = blockIdx.x * 128 + threadIdx.x, lane = threadIdx.x % 32;
  const int key = X[i];
  const unsigned alike = __match_any_sync(0xffffffff, key);
  if (lane == __ffs(alike) - 1) {
#ifdef BROKEN_1
    Y[key] += __popc(alike);  // @count
#else
    atomicAdd(Y + key, __popc(alike));
#endif
  }
  const bool three = __any_sync(0xffffffff, key == 3);
  const unsigned threes = __ballot_sync(0xffffffff, key == 3);
  if (lane == 0) Z[i / 32] = three && threes;
}
