// All blocks meet at grid.sync() between two steps.
#include <cooperative_groups.h>
// launch: grid=4 block=64 cooperative=yes
// in X: int32[256] = numbers(256)
// out P: int32[256]
// out Y: int32[256]
// right: Y == 2 * X[::-1]
// broken 1: race(put, get) -- the block meets instead of the grid
// broken 2: deadlock(meet) -- one block never comes

namespace cg = cooperative_groups;

extern "C" __global__ void KERNEL(const int* X, int* P, int* Y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
#ifdef BROKEN_2
  if (blockIdx.x == 1) return;
#endif
  P[i] = 2 * X[i];  // @put
#ifdef BROKEN_1
  cg::this_thread_block().sync();
#else
  cg::this_grid().sync();  // @meet
#endif
  Y[i] = P[255 - i];  // @get
}
