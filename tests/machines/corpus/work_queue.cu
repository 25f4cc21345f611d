// Persistent blocks: thread 0 takes the next piece of work by an atomic and tells the block.
// launch: grid=3 block=64
// in X: int32[640] = numbers(640)
// out Y: int32[640]
// right: Y == X * X
// broken 1: race(take, ask); may divergent_barrier, deadlock -- no barrier after the block has worked
// broken 2: race(take, ask); may divergent_barrier, deadlock, out_of_bounds -- no barrier after telling
// broken 3: race(next, next) -- the queue is advanced without an atomic
// broken 4: divergent_barrier | deadlock -- one warp goes on to the next round, and the other waits for it

__device__ int next;

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int piece;
  const int t = threadIdx.x;
  for (;;) {
#ifdef BROKEN_3
    if (t == 0) piece = next++;  // @next
#else
    if (t == 0) piece = atomicAdd(&next, 1);  // @take
#endif
#ifndef BROKEN_2
    __syncthreads();
#endif
    const int mine = piece;  // @ask
#ifdef BROKEN_4
    if (mine == 9 && t >= 32) continue;
#endif
    if (mine >= 10) return;
    Y[mine * 64 + t] = X[mine * 64 + t] * X[mine * 64 + t];
#ifndef BROKEN_1
    __syncthreads();
#endif
  }
}
