// Sizes as constants: a schedule is compiled for one shape, and this lets a twin be compiled so, too.
#pragma once

// Replaces the arguments with constants, the macros SIZE_M, SIZE_N and SIZE_K.
template <int ROWS_OF_C, int COLS_OF_C, int TERMS> static __device__ void fix_sizes(int &m, int &n, int &k)
{
    m = ROWS_OF_C, n = COLS_OF_C, k = TERMS;
}

// The same for a sum: SIZE_N.
template <int ELEMENTS> static __device__ void fix_sizes(int &n)
{
    n = ELEMENTS;
}
