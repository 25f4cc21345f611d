// A ring of four places in global memory between two blocks: head and tail counters, acquire and release.
// launch: grid=2 block=32
// in X: int32[512] = numbers(512)
// out Y: int32[512]
// right: Y == X + 1
// broken 1: race(put, get) | order_dependent -- the producer runs one place too far ahead (in some orders)
// broken 2: race(put, get) | order_dependent; may deadlock, endless_loop -- the consumer is too early
// broken 3: race(put, get) -- the consumer frees the place before it has read it
// broken 4: deadlock(full) -- the consumer never frees a place
// broken 5: race(put, get) -- the counters are stored relaxed
// broken 6: race(put, get) -- the counters are stored before the other lanes are done

__device__ int places[4][32];
__device__ unsigned head, tail;

__device__ unsigned load(const unsigned* from) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ void store(unsigned* to, unsigned value) {
#ifndef BROKEN_6
  __syncwarp();
#endif
#ifdef BROKEN_5
  if (threadIdx.x == 0) asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
#else
  if (threadIdx.x == 0) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
#endif
}

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  const int t = threadIdx.x;
#ifdef BROKEN_1
  const unsigned room = 5;
#else
  const unsigned room = 4;
#endif
  for (unsigned k = 0; k < 16; ++k) {
    if (blockIdx.x == 0) {
      while (k - load(&tail) >= room) {  // @full
      }
      places[k % 4][t] = X[k * 32 + t];  // @put
      store(&head, k + 1);
    } else {
#ifdef BROKEN_2
      while (load(&head) + 1 <= k) {
      }
#else
      while (load(&head) <= k) {
      }
#endif
#ifdef BROKEN_3
      store(&tail, k + 1);
#endif
      Y[k * 32 + t] = places[k % 4][t] + 1;  // @get
#if !defined BROKEN_3 && !defined BROKEN_4
      store(&tail, k + 1);
#endif
    }
  }
}
