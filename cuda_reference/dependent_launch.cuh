// Launches that follow one another: the next one begins while this one still runs.
// Has a guard, because a file that joins several twins has this in each of them.
#ifndef DEPENDENT_LAUNCH_CUH
#define DEPENDENT_LAUNCH_CUH

// A kernel calls this first. It lets blocks of the next launch start on SMs that have room, and waits until
// the launch before has ended and its writes are visible. A GPU before sm_90 begins a launch only then
// anyway.
static __device__ __forceinline__ void overlap_launches()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
