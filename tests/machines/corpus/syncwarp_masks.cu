// The halves of each warp exchange values apart, each with a __syncwarp of its own mask.
// launch: grid=1 block=64
// in X: int32[64] = numbers(64)
// out Y: int32[64]
// right: Y == X[np.arange(64) ^ 1]
// broken 1: lockstep(put, get) -- the mask leaves out the lane that wrote
// broken 2: lockstep(put, get) -- no __syncwarp
// broken 3: deadlock(meet) | divergent_aligned(meet); may lockstep -- the mask names lanes of the other half

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int s[64];
  const int t = threadIdx.x, lane = t % 32;
  s[t] = X[t];  // @put
  if (lane < 16) {
#if defined BROKEN_1
    __syncwarp(lane % 2 ? 0xaaaa : 0x5555);
#elif defined BROKEN_3
    __syncwarp(0x1ffff);  // @meet
#elif !defined BROKEN_2
    __syncwarp(0xffff);
#endif
    Y[t] = s[t ^ 1];  // @get
  } else {
    __syncwarp(0xffff0000);
    Y[t] = s[t ^ 1];  // @get
  }
}
