// A prefix sum over blocks by decoupled look-back: state and value of a block are one 64-bit word.
// launch: grid=8 block=32
// in X: int32[256] = numbers(256)
// out Y: int32[256]
// right: Y == np.cumsum(X)
// broken 1: race(publish, look) -- the word is stored and loaded plainly
// broken 2: deadlock(look) | endless_loop(look) -- every block waits for its own word

__device__ unsigned long long words[8];
__device__ unsigned tickets;

__device__ void store(unsigned long long* to, unsigned long long word) {
#ifdef BROKEN_1
  asm volatile("st.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
#else
  *(volatile unsigned long long*)to = word;
#endif
}
__device__ unsigned long long load(const unsigned long long* from) {
#ifdef BROKEN_1
  unsigned long long word;
  asm volatile("ld.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
  return word;
#else
  return *(const volatile unsigned long long*)from;
#endif
}

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int tile, before;
  const int t = threadIdx.x;
  if (t == 0) tile = atomicAdd(&tickets, 1);
  __syncthreads();
  int sum = X[tile * 32 + t];
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(0xffffffff, sum, d);
    if (t >= d) sum += other;
  }
  const int total = __shfl_sync(0xffffffff, sum, 31);
  if (t == 0) {
    const unsigned long long state = tile == 0 ? 2 : 1;
#ifndef BROKEN_2
    store(words + tile, state << 32 | total);  // @publish
#endif
    int found = 0;
#ifdef BROKEN_2
    int look = tile;
#else
    int look = tile - 1;
#endif
    while (look >= 0) {
      unsigned long long word;
      do word = load(words + look); while (word >> 32 == 0);  // @look
      found += int(word);
      look = word >> 32 == 2 ? -1 : look - 1;
    }
    store(words + tile, 2ull << 32 | unsigned(found + total));  // @publish
    before = found;
  }
  __syncthreads();
  Y[tile * 32 + t] = before + sum;
}
