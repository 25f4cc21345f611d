// Blocks draw numbers in the order in which they come; the result does not tell who drew which.
// launch: grid=4 block=32
// out Y: int32[4]
// right: Y == np.arange(4) + 10
// broken 1: order_dependent -- the result tells who came when
// broken 2: overlapping_writes(tell, tell) | race(tell, tell) -- all tell in one place

__device__ unsigned numbers;

extern "C" __global__ void KERNEL(int* Y) {
  if (threadIdx.x) return;
  const unsigned drawn = atomicAdd(&numbers, 1);
#if defined BROKEN_1
  Y[drawn] = blockIdx.x;
#elif defined BROKEN_2
  Y[0] = drawn;  // @tell
#else
  Y[drawn] = drawn + 10;
#endif
}
