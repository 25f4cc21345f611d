// Copies of boxes by tensor maps, through shared memory and with an mbarrier.
#include <cuda.h>

constexpr int ROWS = 32, COLS = 32;

__device__ inline unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ inline void copy_box(float *tile, unsigned long long *barrier, const CUtensorMap *map, int row, int col) {
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(barrier)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(barrier)), "r"(ROWS * COLS * 4)
                 : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];" ::"r"(at(tile)), "l"(map), "r"(col), "r"(row), "r"(at(barrier))
                 : "memory");
  }
  unsigned over;
  do {
    asm volatile("{\n.reg .pred over;\nmbarrier.try_wait.parity.shared::cta.b64 over, [%1], 0;\n"
                 "selp.u32 %0, 1, 0, over;\n}" : "=r"(over) : "r"(at(barrier)) : "memory");
  } while (!over);
}

__device__ inline void write_box(const float *tile, float *out, int width) {
  for (int i = threadIdx.x; i < ROWS * COLS; i += blockDim.x) {
    const int row = i / COLS, col = i % COLS, piece = (col / 4) ^ (row % 8);
    out[(blockIdx.y * ROWS + row) * width + blockIdx.x * COLS + col] = tile[row * COLS + piece * 4 + col % 4];
  }
}

__global__ void by_value(const __grid_constant__ CUtensorMap map, float *out, int width) {
  __shared__ alignas(1024) float tile[ROWS * COLS];
  __shared__ unsigned long long barrier;
  copy_box(tile, &barrier, &map, blockIdx.y * ROWS, blockIdx.x * COLS);
  write_box(tile, out, width);
}

__global__ void by_pointer(const CUtensorMap *map, float *out, int width) {
  __shared__ alignas(1024) float tile[ROWS * COLS];
  __shared__ unsigned long long barrier;
  copy_box(tile, &barrier, map, blockIdx.y * ROWS, blockIdx.x * COLS);
  write_box(tile, out, width);
}

__global__ void store_box(const float *x, const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) float tile[ROWS * COLS];
  for (int i = threadIdx.x; i < ROWS * COLS; i += blockDim.x) tile[i] = x[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(0),
                 "r"(0), "r"(at(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}
