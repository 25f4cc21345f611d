// Two blocks take turns: each adds to what the other has left.
// launch: grid=2 block=32
// out P: int32[32]
// out Y: int32[32]
// right: Y == np.arange(32) + 8
// broken 1: race(update, update) -- no fence before the turn is passed on
// broken 2: race(update, update) -- the fence before the turn is passed on is of the block's scope
// broken 3: deadlock(wait) -- both wait for the other to begin
// broken 4: race(update, update) | race(update, first) -- no barrier of the warp after the wait
// broken 5: race(update, update) | race(update, first) -- no barrier of the warp before the turn is passed on

__device__ volatile int turn;

extern "C" __global__ void KERNEL(int* P, int* Y) {
  const int t = threadIdx.x, me = blockIdx.x;
  if (me == 0) P[t] = t;  // @first
  for (int round = 0; round < 4; ++round) {
#ifdef BROKEN_3
    const int awaited = 2 * round + 1 + me;
#else
    const int awaited = 2 * round + me;
#endif
    if (t == 0) {
      while (turn != awaited) {  // @wait
      }
      __threadfence();
    }
#ifndef BROKEN_4
    __syncwarp();
#endif
    P[t ^ 1] += 1;  // @update
#ifndef BROKEN_5
    __syncwarp();
#endif
    if (t == 0) {
#if defined BROKEN_2
      __threadfence_block();
#elif !defined BROKEN_1
      __threadfence();
#endif
      turn = awaited + 1;
    }
  }
  if (me == 1) Y[t ^ 1] = P[t ^ 1];
}
