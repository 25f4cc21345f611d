// A sum of doubles by a loop over atomicCAS that begins with a plain look: CUDA programming guide, atomics.
// launch: grid=3 block=64
// in X: float64[192] = numbers(192)
// inout Y: float64[2] = 0
// inout L: uint64[192] = 0
// right: (abs(Y - X.sum()) < 1e-9).all()
// sound: may order_dependent
// broken 1: race(look, swap); may lockstep -- what it has seen first is kept
// broken 2: race(look, swap); may lockstep -- what it has seen first decides whether it adds
// broken 3: race(look, once); may lockstep, order_dependent -- one try, whose success nothing looks at

extern "C" __global__ void KERNEL(const double* X, double* Y, unsigned long long* L) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  unsigned long long old = 0, assumed;
  for (int k = 0; k < 2; ++k) {
    unsigned long long* word = (unsigned long long*)Y + k;
    old = *word;  // @look
#ifdef BROKEN_1
    L[i] = old;
#endif
#ifdef BROKEN_2
    if (old == ~0ull) return;
#endif
#ifdef BROKEN_3
    atomicCAS(word, old, __double_as_longlong(X[i] + __longlong_as_double(old)));  // @once
    old = 0;
    continue;
#endif
    do {
      assumed = old;
      old = atomicCAS(word, assumed, __double_as_longlong(X[i] + __longlong_as_double(assumed)));  // @swap
    } while (assumed != old);
  }
  L[i] = old;
}
