// Registers that move from one warpgroup to the others.
#pragma once

// Gives up registers of each thread, down to so many. All warps of the warpgroup do.
template <int REGISTERS> static __device__ inline void keep_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// Waits until the block has registers to spare, and takes up to so many for each thread.
template <int REGISTERS> static __device__ inline void take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// Registers of each thread in a block with a warpgroup that copies and so many that multiply. Together they
// are at most those that the block is launched with, 64 K among all its threads. Threads of two warpgroups
// have as many as a thread can have from the start, so no registers move.
template <int CONSUMING> struct RegistersOf {
    static_assert(1 <= CONSUMING && CONSUMING <= 3, "four would have too few for a wgmma of 256 columns");
    static constexpr int PRODUCER = CONSUMING < 3 ? 24 : 32;
    static constexpr int CONSUMER = CONSUMING < 3 ? 240 : 160;

    static __device__ __forceinline__ void give()
    {
        if constexpr (CONSUMING > 1)
            keep_registers<PRODUCER>();
    }

    static __device__ __forceinline__ void take()
    {
        if constexpr (CONSUMING > 1)
            take_registers<CONSUMER>();
    }
};
