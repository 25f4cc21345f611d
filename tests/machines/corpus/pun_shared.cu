// Shared memory written as float4 and read as float, written as words and read as bytes, and through a union.
// launch: grid=1 block=64
// in X: float32[256] = numbers(256)
// out Y: float32[256]
// out Z: int32[64]
// right: Y == X[::-1]
// right: Z == X.reshape(64, 4)[:, 0].astype(np.float32).view(np.uint32)[::-1] >> 24
// broken 1: race(put, get) -- no barrier
// broken 2: out_of_bounds(put) -- one float4 too far
// broken 3: misaligned(put) -- a float4 at an odd word
// broken 4: race(byte, word) -- a byte is written while another warp reads the word

union Word {
  float number;
  unsigned char bytes[4];
};

extern "C" __global__ void KERNEL(const float* X, float* Y, int* Z) {
  __shared__ __align__(16) float s[256];
  __shared__ Word words[64];
  const int t = threadIdx.x;
#if defined BROKEN_2
  ((float4*)s)[t + 1] = ((const float4*)X)[t];  // @put
#elif defined BROKEN_3
  *(float4*)(s + 4 * t + (t == 0)) = ((const float4*)X)[t];  // @put
#else
  ((float4*)s)[t] = ((const float4*)X)[t];  // @put
#endif
  words[t].number = X[4 * t];
#ifndef BROKEN_1
  __syncthreads();
#endif
  for (int k = 0; k < 4; ++k) Y[t + 64 * k] = s[255 - t - 64 * k];  // @get
#ifdef BROKEN_4
  words[t].bytes[0] = 1;                              // @byte
  Z[t] = __float_as_uint(words[63 - t].number) % 99;  // @word
#else
  Z[t] = words[63 - t].bytes[3];
#endif
}
