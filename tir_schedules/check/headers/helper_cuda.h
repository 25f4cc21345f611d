// Stands in for the header of that name of NVIDIA's samples where it is not beside a file: host code that uses
// it is read by the compiler, and never run.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define checkCudaErrors(call) (void)(call)
#define getLastCudaError(message) (void)(message)
int findCudaDevice(int, const char **);
int gpuGetMaxGflopsDeviceId();
