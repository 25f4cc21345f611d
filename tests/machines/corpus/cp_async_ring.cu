// A pipeline of three stages filled by cp.async, two copies ahead.
// launch: grid=2 block=64
// in X: float32[4096] = numbers(4096)
// out Y: float32[512]
// right: Y == X.reshape(2, 8, 64, 4)[:, :, ::-1].sum(1).reshape(512)
// broken 1: in_flight(copy, get) -- one group too few is waited for
// broken 2: race(copy, get) | in_flight(copy, get) -- no barrier after the wait
// broken 3: race(copy, get) | in_flight(copy, get) -- the copy goes to the stage that is being read
// broken 4: in_flight(copy, get) -- no wait
// broken 5: race(copy, get) | in_flight(copy, get) -- three copies ahead in three stages
// broken 6: in_flight(copy, get) -- the copies of the last turns are not committed, the wait counts on it

__device__ void copy(float4* to, const float* from) {
  const unsigned address = __cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

extern "C" __global__ void KERNEL(const float* X, float* Y) {
  __shared__ float4 stages[3][64];
  const int t = threadIdx.x;
  const float* from = X + blockIdx.x * 2048 + 4 * t;
  float4 sum = make_float4(0, 0, 0, 0);
  for (int k = 0; k < 2; ++k) {
    copy(&stages[k][t], from + 256 * k);  // @copy
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
#pragma unroll 1
  for (int k = 0; k < 8; ++k) {
#if defined BROKEN_1
    asm volatile("cp.async.wait_group 2;" ::: "memory");
#elif !defined BROKEN_4
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
#ifndef BROKEN_2
    __syncthreads();
#endif
#if defined BROKEN_3
    const int stage = k % 3, next = k + 2;
#elif defined BROKEN_5
    const int stage = (k + 3) % 3, next = k + 3;
#else
    const int stage = (k + 2) % 3, next = k + 2;
#endif
    if (next < 8) copy(&stages[stage][t], from + 256 * next);  // @copy
#ifdef BROKEN_6
    if (next < 8)
#endif
      asm volatile("cp.async.commit_group;" ::: "memory");
    const float4 x = stages[k % 3][63 - t];  // @get
    sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
  }
  ((float4*)Y)[blockIdx.x * 64 + t] = sum;
}
