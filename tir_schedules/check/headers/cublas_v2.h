// Stands in for cuBLAS's own header where that is not installed: host code that calls the library is read by
// the compiler, and never run.
#pragma once
#include <cuda_runtime.h>
#include <library_types.h>

typedef struct cublasContext *cublasHandle_t;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_ALLOC_FAILED = 3,
                      CUBLAS_STATUS_INVALID_VALUE = 7, CUBLAS_STATUS_ARCH_MISMATCH = 8, CUBLAS_STATUS_MAPPING_ERROR = 11,
                      CUBLAS_STATUS_EXECUTION_FAILED = 13, CUBLAS_STATUS_INTERNAL_ERROR = 14,
                      CUBLAS_STATUS_NOT_SUPPORTED = 15 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH = 1, CUBLAS_PEDANTIC_MATH = 2,
                    CUBLAS_TF32_TENSOR_OP_MATH = 3 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE };
enum cublasComputeType_t { CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_16F_PEDANTIC = 65, CUBLAS_COMPUTE_32F = 68,
                           CUBLAS_COMPUTE_32F_PEDANTIC = 69, CUBLAS_COMPUTE_64F = 70,
                           CUBLAS_COMPUTE_64F_PEDANTIC = 71, CUBLAS_COMPUTE_32I = 72,
                           CUBLAS_COMPUTE_32I_PEDANTIC = 73, CUBLAS_COMPUTE_32F_FAST_16F = 74,
                           CUBLAS_COMPUTE_32F_FAST_16BF = 75, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_ALGO0 = 0,
                        CUBLAS_GEMM_ALGO1 = 1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
                        CUBLAS_GEMM_DFALT_TENSOR_OP = 99, CUBLAS_GEMM_ALGO0_TENSOR_OP = 100 };

template <typename... T> cublasStatus_t cublasCreate(T...);
template <typename... T> cublasStatus_t cublasDestroy(T...);
template <typename... T> cublasStatus_t cublasSetStream(T...);
template <typename... T> cublasStatus_t cublasSetMathMode(T...);
template <typename... T> cublasStatus_t cublasSetPointerMode(T...);
template <typename... T> cublasStatus_t cublasSgemm(T...);
template <typename... T> cublasStatus_t cublasDgemm(T...);
template <typename... T> cublasStatus_t cublasHgemm(T...);
template <typename... T> cublasStatus_t cublasGemmEx(T...);
template <typename... T> cublasStatus_t cublasSgemmEx(T...);
template <typename... T> cublasStatus_t cublasSgemmBatched(T...);
template <typename... T> cublasStatus_t cublasSgemmStridedBatched(T...);
template <typename... T> cublasStatus_t cublasHgemmStridedBatched(T...);
template <typename... T> cublasStatus_t cublasGemmStridedBatchedEx(T...);
template <typename... T> cublasStatus_t cublasSgemv(T...);
template <typename... T> cublasStatus_t cublasSaxpy(T...);
template <typename... T> cublasStatus_t cublasSscal(T...);
template <typename... T> cublasStatus_t cublasSdot(T...);
template <typename... T> cublasStatus_t cublasSasum(T...);
template <typename... T> cublasStatus_t cublasSnrm2(T...);
template <typename... T> cublasStatus_t cublasSgeam(T...);
const char *cublasGetStatusString(cublasStatus_t);
