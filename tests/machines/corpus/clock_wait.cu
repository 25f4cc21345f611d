// A block waits for a flag, but not for ever. The other block lets some time pass before it sets the flag.
// launch: grid=2 block=32
// out Y: int32[2]
// right: Y == [1, 7]
// broken 1: race(put, get) -- the waiting time counts as synchronisation, the flag is not looked at

__device__ int value, flag;

__device__ void pause(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

extern "C" __global__ void KERNEL(int* Y) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    pause(1000);
    value = 7;  // @put
    __threadfence();
    *(volatile int*)&flag = 1;
    Y[0] = 1;
    return;
  }
#ifdef BROKEN_1
  pause(100000);
#else
  const long long start = clock64();
  while (!*(volatile int*)&flag && clock64() - start < (1ll << 40)) {
  }
  __threadfence();
#endif
  Y[1] = value;  // @get
}
