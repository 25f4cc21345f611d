// Sizes as numbers in the code: a schedule is compiled for one shape, and so can a twin be.
#pragma once

// Puts numbers, those of the macros SIZE_M, SIZE_N and SIZE_K, in place of the arguments.
template <int ROWS_OF_C, int COLS_OF_C, int TERMS> static __device__ void fix_sizes(int &m, int &n, int &k)
{
    m = ROWS_OF_C, n = COLS_OF_C, k = TERMS;
}

// The same of a sum: SIZE_N.
template <int ELEMENTS> static __device__ void fix_sizes(int &n)
{
    n = ELEMENTS;
}
