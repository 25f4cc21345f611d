// More blocks than are resident together: each may wait for one that started before it.
// launch: grid=200 block=32 shared=160000
// out Y: int32[200]
// right: Y == np.arange(200)
// broken 1: deadlock(wait) -- each waits for one that starts after it
// broken 2: deadlock(meet) -- all wait for all

__device__ int done[201];
__device__ unsigned tickets, count;

extern "C" __global__ void KERNEL(int* Y) {
  extern __shared__ int large[];
  if (threadIdx.x) return;
  large[0] = atomicAdd(&tickets, 1);
  const int number = large[0];
#if defined BROKEN_1
  const int other = number + 1;
  const bool waits = number < 199;
#else
  const int other = number - 1;
  const bool waits = number > 0;
#endif
#ifdef BROKEN_2
  atomicAdd(&count, 1);
  while (*(volatile unsigned*)&count < gridDim.x) {  // @meet
  }
#endif
  while (waits && !((volatile int*)done)[other]) {  // @wait
  }
  __threadfence();
  Y[number] = number;
  __threadfence();
  ((volatile int*)done)[number] = 1;
}
