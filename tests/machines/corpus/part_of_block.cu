// Half of the block leaves, the rest has a named barrier of its own. Warps with parts of their own need none.
// launch: grid=2 block=128
// in X: int32[256] = numbers(256)
// out Y: int32[128]
// right: Y.reshape(2, 64) == X.reshape(2, 128)[:, :64][:, ::-1] + X.reshape(2, 2, 64)[:, 1].reshape(2, 64)
// broken 1: race(put, get) -- a barrier of each warp instead
// broken 2: deadlock(meet) | divergent_barrier(meet) -- the barrier counts those who have left
// broken 3: race(own, next) -- a warp reads from the part of the next one
// broken 4: lockstep(own, take) -- no __syncwarp in a warp's own part

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int s[64], parts[4][32];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, b = blockIdx.x;
  parts[warp][31 - lane] = X[b * 128 + t];  // @own
#ifndef BROKEN_4
  __syncwarp();
#endif
  int x = parts[warp][lane];  // @take
#ifdef BROKEN_3
  x = min(x, parts[(warp + 1) % 4][lane] + 1000);  // @next
#endif
  if (t >= 64) return;
  s[t] = x;  // @put
#if defined BROKEN_1
  __syncwarp();
#elif defined BROKEN_2
  asm volatile("bar.sync 1, 128;" ::: "memory");  // @meet
#else
  asm volatile("bar.sync 1, 64;" ::: "memory");
#endif
  Y[b * 64 + t] = s[(1 - warp) * 32 + lane] + X[b * 128 + 64 + t];  // @get
}
