// Launches that follow one another: the next one begins while this one still runs.
// Twins that have this may stand in one file, with this in each: so a guard.
#ifndef DEPENDENT_LAUNCH_CUH
#define DEPENDENT_LAUNCH_CUH

// The first thing a kernel does: it lets blocks of the next launch be brought to the SMs, and waits until the
// launch before it has ended and all that it has written is seen. A GPU before sm_90 begins a launch after
// that anyway.
static __device__ __forceinline__ void overlap_launches()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
