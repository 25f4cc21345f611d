// CUB's sum of N elements on a stream; with temporary == nullptr only says how many bytes of scratch memory it needs.
// Compile: nvcc -arch=sm_90 -O3 -std=c++17 -shared -Xcompiler -fPIC cub_sum.cu -o cub_sum.so
#include <cub/device/device_reduce.cuh>

template <typename T>
int sum(void* temporary, size_t* bytes, const void* X, void* Y, int N, void* stream) {
    return cub::DeviceReduce::Sum(temporary, *bytes, static_cast<const T*>(X), static_cast<T*>(Y), N, static_cast<cudaStream_t>(stream));
}

extern "C" int cub_sum_int32(void* temporary, size_t* bytes, const void* X, void* Y, int N, void* stream) {
    return sum<int>(temporary, bytes, X, Y, N, stream);
}

extern "C" int cub_sum_float32(void* temporary, size_t* bytes, const void* X, void* Y, int N, void* stream) {
    return sum<float>(temporary, bytes, X, Y, N, stream);
}
