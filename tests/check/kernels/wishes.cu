// What users of other tools asked for in public issues, each as a kernel that is wrong and one that is right.
// `finds:` says what must be found, and the mark which line is to be named; `passes` that nothing may be.
#include <cuda_fp16.h>

__device__ unsigned shared_address(const void *at) { return __cvta_generic_to_shared(at); }

__device__ void begin(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ void wait(unsigned barrier, unsigned parity) {
  unsigned over;
  do
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(over) : "r"(barrier), "r"(parity) : "memory");
  while (!over);
}

__device__ void expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

#define COPY(to, from, bytes, barrier) \
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" \
               ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory")

// NVIDIA/compute-sanitizer-samples#19: the rows of a wgmma end where shared memory ends, which is not a fault.
// check: --kernel 'last_rows<0>' --arch sm_90a --block 128 --arg A=f16[64,16] --arg B=f16[8,16]
// check: --arg C=f32[64,8]:out --expect 'C=A @ B.T'
// passes

// The same 128 bytes further on.
// check: --kernel 'last_rows<128>' --arch sm_90a --block 128 --arg A=f16[64,16] --arg B=f16[8,16]
// check: --arg C=f32[64,8]:out --expect 'C=A @ B.T'
// finds: bad_descriptor
template <int OFF> __global__ void __launch_bounds__(128) last_rows(const uint4 *A, const uint4 *B, float *C) {
  __shared__ __align__(128) uint4 both[20 + 132];  // pieces of 16 bytes; half a row of banks between the halves
  const int row = threadIdx.x / 2, half = threadIdx.x % 2;
  both[20 + half * 68 + row] = A[threadIdx.x];
  if (threadIdx.x < 16) both[half * 12 + row] = B[threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const unsigned right = shared_address(both), left = right + 320 + OFF;
  const unsigned long long a = left >> 4 | 68ull << 16 | 8ull << 32, b = right >> 4 | 12ull << 16 | 8ull << 32;
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b) : "memory");  // @last_rows
  asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :: "memory");
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float2 *at = reinterpret_cast<float2 *>(C) + (warp * 16 + lane / 4) * 4 + lane % 4;
  at[0] = make_float2(d[0], d[1]);
  at[32] = make_float2(d[2], d[3]);
}

// NVIDIA/cutlass#2626: a producer that waits until a slot of its ring is empty.
// check: --kernel 'ring<true>' --arch sm_90 --block 64 --arg x=f32[8,128] --arg y=f32[128]:out
// check: --expect 'y=sum(x, axis=0)'
// passes

// One that does not.
// check: --kernel 'ring<false>' --arch sm_90 --block 64 --arg x=f32[8,128] --arg y=f32[128]:out
// check: --expect 'y=sum(x, axis=0)'
// finds: in_flight
template <bool WAITS> __global__ void ring(const float *x, float *y) {
  __shared__ __align__(128) float4 slots[2][32];
  __shared__ unsigned long long full[2], empty[2];
  if (threadIdx.x < 2) {
    begin(shared_address(full + threadIdx.x), 1);
    begin(shared_address(empty + threadIdx.x), 32);
  }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 32) {
    for (int tile = 0; tile < 8; ++tile) {
      const unsigned slot = tile % 2, barrier = shared_address(full + slot);
      if (WAITS) wait(shared_address(empty + slot), tile / 2 % 2 ^ 1);
      expect(barrier, 512);
      COPY(shared_address(slots[slot]), x + tile * 128, 512, barrier);  // @ring
    }
  } else if (threadIdx.x < 32) {
    float4 sum = {};
    for (int tile = 0; tile < 8; ++tile) {
      const unsigned slot = tile % 2;
      wait(shared_address(full + slot), tile / 2 % 2);
      const float4 part = slots[slot][threadIdx.x];
      sum = make_float4(sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      arrive(shared_address(empty + slot));
    }
    reinterpret_cast<float4 *>(y)[threadIdx.x] = sum;
  }
}

// facebookexperimental/CUTracer#106: two copies, each of which is waited for before it is used.
// check: --kernel 'two_copies<0>' --arch sm_90 --block 32 --arg a=f32[32] --arg b=f32[32] --arg y=f32[32]:out
// check: --expect 'y=a*b'
// passes

// The wait for `a` comes after its use.
// check: --kernel 'two_copies<1>' --arch sm_90 --block 32 --arg a=f32[32] --arg b=f32[32] --arg y=f32[32]:out
// check: --expect 'y=a*b'
// finds: in_flight

// There is no wait for `b`, but a pause that is nearly always long enough.
// check: --kernel 'two_copies<2>' --arch sm_90 --block 32 --arg a=f32[32] --arg b=f32[32] --arg y=f32[32]:out
// check: --expect 'y=a*b'
// finds: in_flight
template <int FAULT> __global__ void two_copies(const float *a, const float *b, float *y) {
  __shared__ __align__(128) float left[32], right[32];
  __shared__ unsigned long long full[2];
  const unsigned barrier = shared_address(full);
  if (threadIdx.x == 0) {
    begin(barrier, 1);
    begin(barrier + 8, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    expect(barrier, 128);
    COPY(shared_address(left), a, 128, barrier);
    expect(barrier + 8, 128);
    COPY(shared_address(right), b, 128, barrier + 8);
  }
  __syncthreads();
  if (FAULT != 1) wait(barrier, 0);
  if (FAULT != 2) wait(barrier + 8, 0);
  if (FAULT) __nanosleep(1000);
  y[threadIdx.x] = left[threadIdx.x] * right[threadIdx.x];  // @two_copies
  if (FAULT == 1) wait(barrier, 0);
}

// tile-ai/tilelang#2556: 48 of 64 threads exchange values, and all 64 wait in between.
// check: --kernel 'tail<true>' --block 64 --arg x=f32[48] --arg y=f32[48]:out --expect 'y=x + x[::-1]'
// passes

// Without the barrier, of which the 48 are not a multiple of a warp.
// check: --kernel 'tail<false>' --block 64 --arg x=f32[48] --arg y=f32[48]:out --expect 'y=x + x[::-1]'
// finds: race
template <bool WAITS> __global__ void tail(const float *x, float *y) {
  __shared__ float all[48];
  const int i = threadIdx.x;
  if (i < 48) all[i] = x[i];  // @tail
  if (WAITS) __syncthreads();
  if (i < 48) y[i] = all[i] + all[47 - i];
}

// NVIDIA/cutlass#1234: columns of a tile, with a swizzle against bank conflicts.
// check: --kernel 'columns<true>' --block 32,8 --arg x=f32[32,32] --arg y=f32[32,32]:out --expect 'y=x.T'
// passes

// And without.
// check: --kernel 'columns<false>' --block 32,8 --arg x=f32[32,32] --arg y=f32[32,32]:out --expect 'y=x.T'
// finds: cost
template <bool SWIZZLED> __global__ void columns(const float *x, float *y) {
  __shared__ float tile[32][32];
  const int lane = threadIdx.x;
  for (int row = threadIdx.y; row < 32; row += 8) tile[row][SWIZZLED ? lane ^ row : lane] = x[row * 32 + lane];
  __syncthreads();
  for (int row = threadIdx.y; row < 32; row += 8)
    y[row * 32 + lane] = tile[lane][SWIZZLED ? lane ^ row : row];  // @columns
}

// NVIDIA/cutlass#1882: eight values of each thread, those of neighbours side by side.
// check: --kernel 'layout<1, 32>' --block 32 --arg x=f32[256] --arg y=f32[256]:out --expect 'y=2*x'
// passes

// The layout in which a thread has eight side by side.
// check: --kernel 'layout<8, 1>' --block 32 --arg x=f32[256] --arg y=f32[256]:out --expect 'y=2*x'
// finds: cost
template <int THREAD, int VALUE> __global__ void layout(const float *x, float *y) {
  __shared__ float all[256];
  for (int i = 0; i < 8; ++i) all[i * 32 + threadIdx.x] = x[i * 32 + threadIdx.x];
  __syncwarp();
  for (int i = 0; i < 8; ++i) {
    volatile float *own = all + threadIdx.x * THREAD + i * VALUE;
    *own = 2 * *own;  // @layout
  }
  __syncwarp();
  for (int i = 0; i < 8; ++i) y[i * 32 + threadIdx.x] = all[i * 32 + threadIdx.x];
}
