// Lanes that pass a test are counted by one atomic of the group they form.
#include <cooperative_groups.h>
// launch: grid=4 block=64
// in X: int32[256] = numbers(256)
// out Y: int32[256]
// right: np.sort(Y[: (X > 50).sum()]) == np.sort(X[X > 50])
// sound: may order_dependent
// broken 1: race(count, count) -- the leader counts without an atomic

namespace cg = cooperative_groups;
__device__ int counted;

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  const int x = X[blockIdx.x * 64 + threadIdx.x];
  if (x > 50) {
    auto group = cg::coalesced_threads();
    int base = 0;
    if (group.thread_rank() == 0) {
#ifdef BROKEN_1
      base = counted;  // @count
      counted = base + group.size();  // @count
#else
      base = atomicAdd(&counted, int(group.size()));
#endif
    }
    Y[group.shfl(base, 0) + group.thread_rank()] = x;
  }
}
