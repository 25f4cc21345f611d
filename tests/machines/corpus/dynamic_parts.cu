// Dynamic shared memory divided into a part of ints and a part of floats.
// launch: grid=2 block=64 shared=512
// in X: int32[128] = numbers(128)
// out Y: float32[128]
// right: Y == (X.reshape(2, 64)[:, ::-1] + 0.5 * X.reshape(2, 64)).reshape(128)
// broken 1: race(ints, floats) -- the parts overlap by one element
// broken 2: out_of_bounds(floats) -- the second part begins one element too late
// broken 3: race(ints, get) -- no barrier
// broken 4: misaligned(floats) -- the second part begins at an odd byte

extern "C" __global__ void KERNEL(const int* X, float* Y) {
  extern __shared__ __align__(16) char memory[];
  int* ints = (int*)memory;
#if defined BROKEN_1
  float* floats = (float*)(memory + 63 * 4);
#elif defined BROKEN_2
  float* floats = (float*)(memory + 65 * 4);
#elif defined BROKEN_4
  float* floats = (float*)(memory + 64 * 4 - 1);
#else
  float* floats = (float*)(memory + 64 * 4);
#endif
  const int t = threadIdx.x, x = X[blockIdx.x * 64 + t];
  ints[t] = x;           // @ints
  floats[t] = x * 0.5f;  // @floats
#ifndef BROKEN_3
  __syncthreads();
#endif
  Y[blockIdx.x * 64 + t] = ints[63 - t] + floats[t];  // @get
}
