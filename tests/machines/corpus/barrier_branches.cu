// Barriers in a loop whose end all threads of the block see alike, and in a branch that depends on the block.
// launch: grid=2 block=96
// in X: int32[192] = numbers(192)
// out Y: int32[192]
// right: Y == X.reshape(2, 96)[:, ::-1].reshape(192) * np.repeat([1, 3], 96)
// broken 1: uninitialized(mirror) -- one warp leaves, so that nobody waits for what it does not store
// broken 2: divergent_barrier | deadlock -- warps make different numbers of turns before they meet
// broken 3: divergent_barrier(inner) | deadlock(inner); may race -- the barrier is in a branch of some lanes
// broken 4: divergent_barrier | deadlock -- two barriers in two branches

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int s[96];
  const int t = threadIdx.x, i = blockIdx.x * 96 + t;
#ifdef BROKEN_1
  if (t >= 64) return;
#endif
  s[t] = X[i];
#if defined BROKEN_3
  if (t % 2) __syncthreads();  // @inner
#elif defined BROKEN_4
  if (t < 32)
    asm volatile("bar.sync 0;" ::: "memory");
  else
    asm volatile("bar.sync 1;" ::: "memory");
#else
  __syncthreads();
#endif
  int x = s[95 - t];  // @mirror
  if (blockIdx.x == 1) {
#ifdef BROKEN_2
    const int turns = 2 + t / 64;
#else
    const int turns = 2;
#endif
#pragma unroll 1
    for (int k = 0; k < turns; ++k) {
      __syncthreads();
      s[t] = x;
      __syncthreads();
      x += s[t] / (k + 1);
      if (k == 1) x = s[t] / 2 * 3;
    }
#ifdef BROKEN_2
    __syncthreads();
#endif
  }
  Y[i] = x;
}
