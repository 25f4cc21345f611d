// A lock by tickets: blocks have their turn in the order in which they asked.
// launch: grid=5 block=32
// inout Y: int32[6] = 0
// right: Y[0] == 5
// right: np.sort(Y[1:]) == np.arange(5)
// sound: may order_dependent
// broken 1: race(update, update) -- the turn is passed on before the update is fenced
// broken 2: race(update, update) -- no fence once it is one's turn
// broken 3: deadlock(turn) -- the turn is passed to the wrong one
// broken 4: race(ticket, ticket); may deadlock, endless_loop -- tickets are taken without an atomic

__device__ unsigned next, serving;

extern "C" __global__ void KERNEL(int* Y) {
  if (threadIdx.x) return;
#ifdef BROKEN_4
  const unsigned mine = next++;  // @ticket
#else
  const unsigned mine = atomicAdd(&next, 1);
#endif
  while (*(volatile unsigned*)&serving != mine) {  // @turn
  }
#ifndef BROKEN_2
  __threadfence();
#endif
  const int turn = Y[0];  // @update
  Y[0] = turn + 1;        // @update
  Y[1 + turn] = blockIdx.x;
#ifndef BROKEN_1
  __threadfence();
#endif
#ifdef BROKEN_3
  *(volatile unsigned*)&serving = mine + 2;
#else
  *(volatile unsigned*)&serving = mine + 1;
#endif
}
