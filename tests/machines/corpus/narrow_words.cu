// Threads of different warps write neighbouring bytes and halves of one word: no fault. Bits of one byte are.
// launch: grid=2 block=128
// in X: uint8[256] = numbers(256)
// out Y: uint8[256]
// out Z: uint16[256]
// out W: uint8[64]
// right: Y.reshape(2, 128) == X.reshape(2, 128)[:, ::-1]
// right: Z == X * np.uint16(256) + 1
// right: W == np.repeat([3, 5, 9, 17], 16)
// broken 1: race(bits, bits) -- four warps set bits of one byte

extern "C" __global__ void KERNEL(const unsigned char* X, unsigned char* Y, unsigned short* Z,
                                  unsigned char* W) {
  __shared__ unsigned char s[128];
  __shared__ unsigned char bits[128];
  const int t = threadIdx.x, i = blockIdx.x * 128 + t;
  const int spread = t % 32 * 4 + t / 32;  // neighbours are of different warps
  s[spread] = X[blockIdx.x * 128 + spread];
#ifdef BROKEN_1
  if (t < 32) bits[t] = 0;
  __syncthreads();
  bits[t % 32] |= 1 << t / 32;  // @bits
#else
  bits[t % 32 * 4 + t / 32] = 2 << t / 32 | 1;
#endif
  __syncthreads();
  Y[blockIdx.x * 128 + spread] = s[127 - spread];
  Z[blockIdx.x * 128 + spread] = X[blockIdx.x * 128 + spread] * 256 + 1;
  if (blockIdx.x == 0 && t < 64) W[t] = bits[t % 16 * 4 + t / 16];
}
