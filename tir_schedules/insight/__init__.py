"""What a schedule does, seen without a GPU: metrics of its kernel, its steps one by one, its shared memory;
and Nsight Compute beside them."""
