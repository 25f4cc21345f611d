// Every block writes its own part of an output and reads that part again.
// launch: grid=4 block=32
// in X: int32[128] = numbers(128)
// out Y: int32[128]
// out Z: int32[128]
// right: Y == X + 1
// right: Z == (X + 1).reshape(4, 32)[:, ::-1].reshape(128)
// broken 1: race(put, get) -- it reads the part of the next block
// broken 2: race(put, get) -- it reads the part of the block before
// broken 3: overlapping_writes(put, put) | race(put, put) -- two blocks write one part
// broken 4: lockstep(put, get) -- no __syncwarp between writing and reading
// broken 5: write_to_input(input) -- the input is changed
// broken 6: out_of_bounds(put); may race, overlapping_writes -- the last block writes past the end

extern "C" __global__ void KERNEL(const int* X, int* Y, int* Z) {
  const int t = threadIdx.x, b = blockIdx.x;
#if defined BROKEN_3
  Y[b / 2 * 32 + t] = X[b * 32 + t] + 1;  // @put
#elif defined BROKEN_6
  Y[b * 32 + t + b / 3] = X[b * 32 + t] + 1;  // @put
#else
  Y[b * 32 + t] = X[b * 32 + t] + 1;  // @put
#endif
#ifdef BROKEN_5
  const_cast<int*>(X)[b * 32 + t] = 0;  // @input
#endif
#ifndef BROKEN_4
  __syncwarp();
#endif
#if defined BROKEN_1
  Z[b * 32 + t] = Y[(b + 1) % 4 * 32 + 31 - t];  // @get
#elif defined BROKEN_2
  Z[b * 32 + t] = Y[(b + 3) % 4 * 32 + 31 - t];  // @get
#else
  Z[b * 32 + t] = Y[b * 32 + 31 - t];  // @get
#endif
}
