// Barriers in shared memory (mbarrier), at which threads and copies arrive and threads wait; fences between
// threads and the units that work beside them; barriers of a warpgroup and of a cluster.
//
// An mbarrier is 8 bytes. It has phases, one after the other. A phase ends when the number of arrivals that
// the barrier was initialised with have come, and all bytes that were announced have been copied. A thread
// names the phase that it waits for in one of two ways: by the token that its own arrival returned, or by the
// parity of the phase, 0 for the first phase, 1 for the second, 0 for the third. A barrier distinguishes only
// the current phase and the one before, so no thread may be two phases behind. A wait for parity 1 of a new
// barrier returns at once.
#pragma once

#include "addresses.cuh"

constexpr int WARPGROUP = 128; // threads: four warps, the first a multiple of four

// The number of a warpgroup, threadIdx.y. What lane 0 tells all lanes is uniform to ptxas, and so are
// descriptors of wgmma that follow from it: uniform registers and one instruction for a warp, in place of
// copies from a register of each lane.
static __device__ inline int warpgroup_number()
{
    return __shfl_sync(0xffffffff, threadIdx.y, 0);
}

static __device__ inline void initialise_barrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes what a thread wrote to shared memory by ordinary stores or cp.async visible to copies of boxes and to
// wgmma that come after this, for instance after a barrier.
static __device__ inline void fence_async_proxy()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The same for barriers that were initialised, and for the whole cluster. A barrier of the block or the
// cluster has to follow.
static __device__ inline void publish_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Returns the token of the phase in which it arrives.
static __device__ inline unsigned long long arrive(unsigned barrier)
{
    unsigned long long token;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(barrier) : "memory");
    return token;
}

// Arrives, and announces so many bytes of copies.
static __device__ inline void arrive_announcing(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

// Arrives at a barrier of any block of the cluster: see address_in_block.
static __device__ inline void arrive_in_cluster(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// try_wait waits for a while; it returns whether the phase is over.
static __device__ inline void wait_for_token(unsigned barrier, unsigned long long token)
{
    unsigned over;
    do {
        asm volatile("{\n"
                     ".reg .pred over;\n"
                     "mbarrier.try_wait.shared::cta.b64 over, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, over;\n"
                     "}"
                     : "=r"(over)
                     : "r"(barrier), "l"(token)
                     : "memory");
    } while (!over);
}

// Like __syncthreads, for the barrier's threads and copies.
static __device__ inline void arrive_and_wait(unsigned barrier)
{
    wait_for_token(barrier, arrive(barrier));
}

static __device__ inline void wait_for_parity(unsigned barrier, unsigned parity)
{
    unsigned over;
    do {
        asm volatile("{\n"
                     ".reg .pred over;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, over;\n"
                     "}"
                     : "=r"(over)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!over);
}

// __syncthreads for the threads of one warpgroup. id: 1 to 15, one for each warpgroup; 0 is that of
// __syncthreads.
static __device__ inline void sync_warpgroup(unsigned id)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(WARPGROUP) : "memory");
}

// __syncthreads for all blocks of a cluster.
static __device__ inline void sync_cluster()
{
    asm volatile("barrier.cluster.arrive;\n"
                 "barrier.cluster.wait;" ::
                     : "memory");
}

// The number of this block in its cluster.
static __device__ inline unsigned block_in_cluster()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
