// A product by a loop over atomicCAS, beginning with a plain look, and a list built by exchanging its head.
// launch: grid=2 block=32
// inout Y: uint32[1] = 1
// inout H: int32[1] = -1
// out N: int32[64]
// right: Y == 3 ** 20
// right: sorted(N.tolist() + H.tolist()) == list(range(-1, 64))
// sound: may order_dependent
// broken 1: race(first, replace) -- the first look is plain, and not for the exchange alone
// broken 2: race(replace, product) -- a product without an atomic
// broken 3: race(head, head); may lockstep -- the head is exchanged without an atomic

extern "C" __global__ void KERNEL(unsigned* Y, int* H, int* N) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  if (i % 32 < 10) {
#ifdef BROKEN_2
    if (i == 0) *Y *= 3;  // @product
#endif
#ifdef BROKEN_1
    unsigned old = *Y, seen;  // @first
    N[i] = old;
#else
    unsigned old = *(volatile unsigned*)Y, seen;  // @first
#endif
    while ((seen = atomicCAS(Y, old, old * 3)) != old) old = seen;  // @replace
  }
#ifdef BROKEN_3
  N[i] = *H;  // @head
  *H = i;     // @head
#else
  N[i] = atomicExch(H, i);
#endif
}
