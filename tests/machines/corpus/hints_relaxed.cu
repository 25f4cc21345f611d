// Volatile looks at what others change, with no fence: a packed look-back, and a counter that is a hint.
// launch: grid=6 block=32
// inout S: uint64[6] = 0
// inout C: uint32[1] = 0
// out Y: uint32[6]
// inout H: uint32[6] = 0
// right: Y == np.arange(6)
// sound: may order_dependent
// broken 1: stale_read(value) -- the value has a word of its own
// broken 2: stale_read(count) -- the counter has to be the newest

extern "C" __global__ void KERNEL(volatile unsigned long long* S, unsigned* C, unsigned* Y, unsigned* H) {
  if (threadIdx.x) return;
  const unsigned b = blockIdx.x;
  unsigned sum = 0;
  atomicAdd(C, 1);
#ifdef BROKEN_1
  volatile unsigned* words = (volatile unsigned*)S;
  if (b) {
    while (words[2 * b - 1] == 0);
    sum = words[2 * b - 2];  // @value
  }
  words[2 * b] = sum + 1;
  words[2 * b + 1] = 1;
#else
  if (b) {
    unsigned long long seen;
    do seen = S[b - 1];
    while (seen >> 32 == 0);
    sum = (unsigned)seen;
  }
  S[b] = 1ull << 32 | (sum + 1);
#endif
  Y[b] = sum;
#ifdef BROKEN_2
  H[b] = *(volatile unsigned*)C;  // @count
#else
  if (*(volatile unsigned*)C > 3) atomicAdd(&H[b], 1);
#endif
}
