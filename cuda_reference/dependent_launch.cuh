// Launches that follow one another: the next one begins while this one still runs.
// Has a guard, because a file that joins several twins has this in each of them.
#ifndef DEPENDENT_LAUNCH_CUH
#define DEPENDENT_LAUNCH_CUH

// A kernel calls this first. It waits until the launch before has ended and its writes are visible. Then it
// lets blocks of the next launch start on SMs that have room. A GPU before sm_90 begins a launch only when the
// one before has ended anyway.
static __device__ __forceinline__ void overlap_launches()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

#endif
