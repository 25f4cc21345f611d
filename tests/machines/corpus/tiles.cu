// Tiles of 8 and 16 lanes: a tree in shared memory in tiles of 8, shuffles in tiles of 16.
#include <cooperative_groups.h>
// launch: grid=2 block=64
// in X: int32[128] = numbers(128)
// out Y: int32[16]
// out Z: int32[8]
// right: Y == X.reshape(16, 8).sum(1)
// right: Z == X.reshape(8, 16).max(1)
// broken 1: lockstep(put, tree) -- no tile.sync() before the tree
// broken 2: lockstep(tree, tree) -- no tile.sync() between the tree's steps

namespace cg = cooperative_groups;

extern "C" __global__ void KERNEL(const int* X, int* Y, int* Z) {
  __shared__ int s[64];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  s[t] = X[i];  // @put
#ifndef BROKEN_1
  tile.sync();
#endif
  for (int half = 4; half > 0; half /= 2) {
    if (tile.thread_rank() < half) s[t] += s[t + half];  // @tree
#ifndef BROKEN_2
    tile.sync();
#endif
  }
  if (tile.thread_rank() == 0) Y[i / 8] = s[t];
  auto wide = cg::tiled_partition<16>(cg::this_thread_block());
  int most = X[i];
  for (int d = 8; d > 0; d /= 2) most = max(most, wide.shfl_xor(most, d));
  if (wide.thread_rank() == 0) Z[i / 16] = most;
}
