// Stands in for cuRAND's own header where that is not installed: host code that calls the library is read by
// the compiler, and never run.
#pragma once
#include <cuda_runtime.h>

typedef struct curandGenerator_st *curandGenerator_t;
enum curandStatus_t { CURAND_STATUS_SUCCESS = 0 };
enum curandRngType_t { CURAND_RNG_PSEUDO_DEFAULT = 100, CURAND_RNG_PSEUDO_XORWOW = 101, CURAND_RNG_PSEUDO_MTGP32 = 141,
                       CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161 };

template <typename... T> curandStatus_t curandCreateGenerator(T...);
template <typename... T> curandStatus_t curandCreateGeneratorHost(T...);
template <typename... T> curandStatus_t curandDestroyGenerator(T...);
template <typename... T> curandStatus_t curandSetPseudoRandomGeneratorSeed(T...);
template <typename... T> curandStatus_t curandSetStream(T...);
template <typename... T> curandStatus_t curandGenerate(T...);
template <typename... T> curandStatus_t curandGenerateUniform(T...);
template <typename... T> curandStatus_t curandGenerateUniformDouble(T...);
template <typename... T> curandStatus_t curandGenerateNormal(T...);
