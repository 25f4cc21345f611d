// A message goes round the warps of a block, through shared memory with volatile flags and block fences.
// launch: grid=1 block=128
// in X: int32[128] = numbers(128)
// out Y: int32[32]
// right: Y == X.reshape(4, 32).sum(0)
// broken 1: race(put, get) -- no fence before the flag
// broken 2: race(put, get) -- no fence after the wait
// broken 3: deadlock(wait) | endless_loop(wait) -- each warp waits for the next, the last for the first
// broken 4: race(zero, wait) | race(zero, flag); may deadlock, endless_loop -- no barrier after zeroing

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int message[4][32];
  __shared__ volatile int full[4][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  *(int*)&full[3 - warp][lane] = 0;  // @zero
#ifndef BROKEN_4
  __syncthreads();
#endif
  int sum = X[threadIdx.x];
#ifdef BROKEN_3
  const int from = (warp + 1) % 4, to = warp;
  const bool waits = true;
#else
  const int from = warp - 1, to = warp;
  const bool waits = warp > 0;
#endif
  if (waits) {
    while (!full[from][lane]) {  // @wait
    }
#ifndef BROKEN_2
    __threadfence_block();
#endif
    sum += message[from][lane];  // @get
  }
  message[to][lane] = sum;  // @put
#ifndef BROKEN_1
  __threadfence_block();
#endif
  full[to][lane] = 1;  // @flag
  if (warp == 3) Y[lane] = sum;
}
