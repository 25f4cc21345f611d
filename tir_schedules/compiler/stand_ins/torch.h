// Stands in for PyTorch's headers: what device code uses of them. Host code, which needs tensors, is left out.
#pragma once
#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <iostream>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 9
#define TORCH_VERSION_PATCH 0
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#define C10_WARP_SIZE 32
#define C10_LIKELY(condition) __builtin_expect(static_cast<bool>(condition), 1)
#define C10_UNLIKELY(condition) __builtin_expect(static_cast<bool>(condition), 0)
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_RESTRICT __restrict__
#define C10_CUDA_API
#define C10_API
#define TORCH_API
#define TORCH_CUDA_CU_API
#define GPU_LAMBDA __host__ __device__
#define TORCH_CHECK(...) ((void)0)
#define TORCH_INTERNAL_ASSERT(...) ((void)0)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) ((void)0)
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
#define CUDA_KERNEL_ASSERT_MSG(condition, message) assert(condition)
#define CUDA_KERNEL_LOOP_TYPE(i, n, index_t)                                                         \
  for (index_t i = static_cast<index_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < (n);             \
       i += static_cast<index_t>(blockDim.x) * gridDim.x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
#define CUDA_1D_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)

namespace c10 {
// A number of 16 bits that computes in float32 and rounds each result.
#define TIR_SCHEDULES_16_BITS(NAME, CUDA, WIDEN, NARROW)                                                   \
  struct alignas(2) NAME {                                                                                 \
    CUDA value;                                                                                            \
    NAME() = default;                                                                                      \
    __host__ __device__ NAME(float wide) : value(NARROW(wide)) {}                                          \
    __host__ __device__ NAME(const CUDA &same) : value(same) {}                                            \
    __host__ __device__ operator float() const { return WIDEN(value); }                                    \
    __host__ __device__ operator CUDA() const { return value; }                                            \
  };                                                                                                       \
  TIR_SCHEDULES_OPERATOR(NAME, +)                                                                          \
  TIR_SCHEDULES_OPERATOR(NAME, -)                                                                          \
  TIR_SCHEDULES_OPERATOR(NAME, *)                                                                          \
  TIR_SCHEDULES_OPERATOR(NAME, /)                                                                          \
  TIR_SCHEDULES_COMPARISON(NAME, <)                                                                        \
  TIR_SCHEDULES_COMPARISON(NAME, >)                                                                        \
  TIR_SCHEDULES_COMPARISON(NAME, <=)                                                                       \
  TIR_SCHEDULES_COMPARISON(NAME, >=)                                                                       \
  TIR_SCHEDULES_COMPARISON(NAME, ==)                                                                       \
  TIR_SCHEDULES_COMPARISON(NAME, !=)                                                                       \
  __host__ __device__ inline NAME operator-(const NAME &a) { return -static_cast<float>(a); }

// With a float or a double the result is of that type, with an integer it has 16 bits.
#define TIR_SCHEDULES_OPERATOR(NAME, OP)                                                                   \
  __host__ __device__ inline NAME operator OP(const NAME &a, const NAME &b) {                              \
    return static_cast<float>(a) OP static_cast<float>(b);                                                 \
  }                                                                                                        \
  template <typename T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>                           \
  __host__ __device__ std::conditional_t<std::is_floating_point<T>::value, T, NAME> operator OP(           \
      const NAME &a, T b) {                                                                                \
    using Wide = std::conditional_t<std::is_floating_point<T>::value, T, float>;                           \
    return static_cast<Wide>(static_cast<float>(a)) OP static_cast<Wide>(b);                               \
  }                                                                                                        \
  template <typename T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>                           \
  __host__ __device__ std::conditional_t<std::is_floating_point<T>::value, T, NAME> operator OP(           \
      T a, const NAME &b) {                                                                                \
    using Wide = std::conditional_t<std::is_floating_point<T>::value, T, float>;                           \
    return static_cast<Wide>(a) OP static_cast<Wide>(static_cast<float>(b));                               \
  }                                                                                                        \
  __host__ __device__ inline NAME &operator OP##=(NAME &a, const NAME &b) { return a = a OP b; }           \
  __host__ __device__ inline float &operator OP##=(float &a, const NAME &b) {                              \
    return a = a OP static_cast<float>(b);                                                                 \
  }

#define TIR_SCHEDULES_COMPARISON(NAME, OP)                                                                 \
  __host__ __device__ inline bool operator OP(const NAME &a, const NAME &b) {                              \
    return static_cast<float>(a) OP static_cast<float>(b);                                                 \
  }                                                                                                        \
  template <typename T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>                           \
  __host__ __device__ bool operator OP(const NAME &a, T b) {                                               \
    return static_cast<float>(a) OP b;                                                                     \
  }                                                                                                        \
  template <typename T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>                           \
  __host__ __device__ bool operator OP(T a, const NAME &b) {                                               \
    return a OP static_cast<float>(b);                                                                     \
  }

TIR_SCHEDULES_16_BITS(Half, __half, __half2float, __float2half)
TIR_SCHEDULES_16_BITS(BFloat16, __nv_bfloat16, __bfloat162float, __float2bfloat16)

template <typename T> struct TirSchedulesWide { using type = T; };
template <> struct TirSchedulesWide<Half> { using type = float; };
template <> struct TirSchedulesWide<BFloat16> { using type = float; };

template <typename T> __host__ __device__ T ceil_div(T a, T b) { return (a + b - 1) / b; }
}  // namespace c10

namespace at {
using c10::BFloat16;
using c10::ceil_div;
using c10::Half;

template <typename T> using opmath_type = typename c10::TirSchedulesWide<T>::type;
template <typename T, bool on_gpu> using acc_type = typename c10::TirSchedulesWide<T>::type;

template <typename T> struct numeric_limits {};
#define TIR_SCHEDULES_LIMITS(T, LEAST, MOST, BELOW, ABOVE)                                                 \
  template <> struct numeric_limits<T> {                                                                   \
    static inline __host__ __device__ T lowest() { return LEAST; }                                         \
    static inline __host__ __device__ T max() { return MOST; }                                             \
    static inline __host__ __device__ T lower_bound() { return BELOW; }                                    \
    static inline __host__ __device__ T upper_bound() { return ABOVE; }                                    \
  };
TIR_SCHEDULES_LIMITS(float, -FLT_MAX, FLT_MAX, -INFINITY, INFINITY)
TIR_SCHEDULES_LIMITS(double, -DBL_MAX, DBL_MAX, -INFINITY, INFINITY)
TIR_SCHEDULES_LIMITS(Half, -65504.0f, 65504.0f, -INFINITY, INFINITY)
TIR_SCHEDULES_LIMITS(BFloat16, -3.3895314e38f, 3.3895314e38f, -INFINITY, INFINITY)
TIR_SCHEDULES_LIMITS(int8_t, INT8_MIN, INT8_MAX, INT8_MIN, INT8_MAX)
TIR_SCHEDULES_LIMITS(uint8_t, 0, UINT8_MAX, 0, UINT8_MAX)
TIR_SCHEDULES_LIMITS(int16_t, INT16_MIN, INT16_MAX, INT16_MIN, INT16_MAX)
TIR_SCHEDULES_LIMITS(int32_t, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX)
TIR_SCHEDULES_LIMITS(int64_t, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX)

template <typename T> struct DefaultPtrTraits { typedef T *PtrType; };
template <typename T> struct RestrictPtrTraits { typedef T *__restrict__ PtrType; };

template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename index_t = int64_t>
class TensorAccessor {
 public:
  typedef typename Traits<T>::PtrType PtrType;
  __host__ __device__ TensorAccessor(PtrType data, const index_t *sizes, const index_t *strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  __host__ __device__ index_t size(index_t i) const { return sizes_[i]; }
  __host__ __device__ index_t stride(index_t i) const { return strides_[i]; }
  __host__ __device__ PtrType data() const { return data_; }
  __host__ __device__ decltype(auto) operator[](index_t i) const {
    if constexpr (N == 1)
      return (data_[strides_[0] * i]);
    else
      return TensorAccessor<T, N - 1, Traits, index_t>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }

 private:
  PtrType data_;
  const index_t *sizes_, *strides_;
};

template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename index_t = int64_t>
class GenericPackedTensorAccessor {
 public:
  typedef typename Traits<T>::PtrType PtrType;
  __host__ __device__ index_t size(index_t i) const { return sizes_[i]; }
  __host__ __device__ index_t stride(index_t i) const { return strides_[i]; }
  __host__ __device__ PtrType data() const { return data_; }
  __host__ __device__ decltype(auto) operator[](index_t i) const {
    return TensorAccessor<T, N, Traits, index_t>(data_, sizes_, strides_)[i];
  }

 private:
  PtrType data_;
  index_t sizes_[N], strides_[N];
};

template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int32_t>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, int64_t>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename index_t = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, Traits, index_t>;
}  // namespace at

namespace torch {
using namespace at;
}

template <typename T> __device__ T gpuAtomicAdd(T *place, T value) { return atomicAdd(place, value); }
__device__ inline at::Half gpuAtomicAdd(at::Half *place, at::Half value) {
  return atomicAdd(reinterpret_cast<__half *>(place), value.value);
}
__device__ inline at::BFloat16 gpuAtomicAdd(at::BFloat16 *place, at::BFloat16 value) {
  return atomicAdd(reinterpret_cast<__nv_bfloat16 *>(place), value.value);
}
template <typename T> __device__ void gpuAtomicAddNoReturn(T *place, T value) { gpuAtomicAdd(place, value); }

template <typename T> __device__ T WARP_SHFL(T value, int lane, int width = 32, unsigned mask = 0xffffffff) {
  return __shfl_sync(mask, value, lane, width);
}
template <typename T> __device__ T WARP_SHFL_XOR(T value, int lanes, int width = 32, unsigned mask = 0xffffffff) {
  return __shfl_xor_sync(mask, value, lanes, width);
}
template <typename T> __device__ T WARP_SHFL_UP(T value, unsigned by, int width = 32, unsigned mask = 0xffffffff) {
  return __shfl_up_sync(mask, value, by, width);
}
template <typename T> __device__ T WARP_SHFL_DOWN(T value, unsigned by, int width = 32, unsigned mask = 0xffffffff) {
  return __shfl_down_sync(mask, value, by, width);
}
__device__ inline unsigned WARP_BALLOT(int predicate, unsigned mask = 0xffffffff) {
  return __ballot_sync(mask, predicate);
}

namespace at {
namespace native {
namespace memory {
template <typename T, int N> struct alignas(sizeof(T) * N) aligned_vector { T val[N]; };
}  // namespace memory
namespace cuda_utils {
template <typename T> __device__ T WarpReduceSum(T value) {
  for (int by = 16; by > 0; by /= 2) value += WARP_SHFL_DOWN(value, by);
  return value;
}
template <typename T> __device__ T BlockReduceSum(T value, T *shared) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = WarpReduceSum(value);
  __syncthreads();
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / 32 ? shared[lane] : T(0);
  return warp == 0 ? WarpReduceSum(value) : value;
}
}  // namespace cuda_utils
}  // namespace native
}  // namespace at
