// A ring that one thread fills by bulk copies and a warpgroup multiplies: 64 x 16 of A, 8 x 16 of B of each K tile.
// For sm_90a. FLIGHT: groups of wgmma that stay in flight.
// check: --kernel product<2,0> --grid 1 --block 160 --shared 118784
// check: --arg X=u8[712704]:zeros --arg Y=f32[512]:out
// Who waits for the products of the turn before:
// check: --kernel product<2,1> --grid 1 --block 160 --shared 118784
// check: --arg X=u8[712704]:zeros --arg Y=f32[512]:out
// And with a slot more:
// check: --kernel product<3,1> --grid 1 --block 160 --shared 178176
// check: --arg X=u8[712704]:zeros --arg Y=f32[512]:out
constexpr int K_TILES = 12, BYTES = 59392;

__device__ void wait(unsigned barrier, unsigned parity) {
  unsigned over;
  do
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
                 " selp.u32 %0, 1, 0, p; }"
                 : "=r"(over) : "r"(barrier), "r"(parity) : "memory");
  while (!over);
}

template <int SLOTS, int FLIGHT> __global__ void __launch_bounds__(160) product(const char *X, float *Y) {
  extern __shared__ __align__(128) char slots[];
  __shared__ unsigned long long full[SLOTS], empty[SLOTS];
  const unsigned at = __cvta_generic_to_shared(slots);
  const unsigned fulls = __cvta_generic_to_shared(full), empties = __cvta_generic_to_shared(empty);
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < SLOTS; ++slot) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(fulls + 8 * slot) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 4;" ::"r"(empties + 8 * slot) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 128) {
    for (int k_tile = 0; k_tile < K_TILES; ++k_tile) {
      const unsigned slot = k_tile % SLOTS, barrier = fulls + 8 * slot;
      wait(empties + 8 * slot, k_tile / SLOTS % 2 ^ 1);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                   ::"r"(barrier), "n"(BYTES) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                   ::"r"(at + slot * BYTES), "l"(X + k_tile * BYTES), "n"(BYTES), "r"(barrier) : "memory");
    }
  } else if (threadIdx.x < 128) {
    float d[4] = {};
    for (int k_tile = 0; k_tile < K_TILES; ++k_tile) {
      const unsigned slot = k_tile % SLOTS, a = at + slot * BYTES;
      wait(fulls + 8 * slot, k_tile / SLOTS % 2);
      const unsigned long long strides = 64ull << 16 | 8ull << 32;
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5,"
                   " 1, 1, 1, 0, 0;"
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                   : "l"(a >> 4 | strides), "l"((a + 2048) >> 4 | strides) : "memory");
      asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned %0;"
                   ::"n"(FLIGHT) : "memory");
      if (threadIdx.x % 32 == 0 && k_tile >= FLIGHT)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                     ::"r"(empties + 8 * ((k_tile - FLIGHT) % SLOTS)) : "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :: "memory");
    for (int k = 0; k < 4; ++k) Y[k * 128 + threadIdx.x] = d[k];
  }
}
