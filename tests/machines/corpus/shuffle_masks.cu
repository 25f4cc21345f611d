// Shuffles in one branch of a divergent warp, among its lanes alone.
// launch: grid=1 block=64
// in X: int32[64] = numbers(64)
// out Y: int32[64]
// right: Y == np.where(np.arange(64) % 32 < 8, X.reshape(8, 8)[::4].sum(1).repeat(32), X)
// broken 1: divergent_aligned(shuffle) | deadlock(shuffle) -- the mask names lanes of the other branch
// broken 2: divergent_aligned(shuffle) | uninitialized -- it reads from a lane outside the mask

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  const int t = threadIdx.x;
  int x = X[t];
  if (t % 32 < 8) {
#if defined BROKEN_1
    for (int d = 4; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffff, x, d);  // @shuffle
#elif defined BROKEN_2
    for (int d = 8; d > 0; d /= 2) x += __shfl_xor_sync(0xff, x, d);  // @shuffle
#else
    for (int d = 4; d > 0; d /= 2) x += __shfl_xor_sync(0xff, x, d);  // @shuffle
#endif
  }
  Y[t] = x;
}
