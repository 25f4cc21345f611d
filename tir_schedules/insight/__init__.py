"""What a schedule does, seen without a GPU. The rooms, each built on those before it:

metrics: registers, occupancy, wavefronts, sectors and instructions of each launch; the roofline.
inspection: a rung's schedule beside its twin.
banks: how a warp's requests meet the banks of shared memory, in pictures.
trace: a schedule, primitive by primitive.
profile: the same counters as Nsight Compute counts them on a GPU.
"""
