// Stands in for cuBLAS's own header, as cublas_v2.h does.
#pragma once
#include "cublas_v2.h"
