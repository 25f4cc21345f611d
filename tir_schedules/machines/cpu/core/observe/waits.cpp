// How long blocks wait for words in global memory that others store, as in Stream-K, where a block adds to the sums of the
// one before it. Blocks are executed one after the other, so none of them is seen to wait. But a warp that looks at a word
// in a loop that waits for memory knows which block stored it, and how far that block had come. So each warp has two
// clocks, in cycles: one with what its own basic blocks take, and one that is also no earlier than what the warp has
// waited for. Barriers and mbarriers pass both on.
//
// A word that a block stores several times counts as stored when it did so first, because others may go on from there: a
// block that publishes its sum, and later that of all blocks before it, makes none wait for the latter.
#include "observe/observer.h"

static f64 next_of(Ends& ends) {
  if (ends.empty()) return 0;
  const f64 found = ends.top();
  ends.pop();
  return found;
}
void Waits::begin(std::vector<Warp>& warps) {
  Elapsed start;
  if (begun++ >= resident) start = {next_of(alone), next_of(among)};
  for (Warp& W : warps) W.elapsed = start;
}
void Waits::end(const std::vector<Warp>& warps) {
  Elapsed own;
  for (const Warp& W : warps) own.join(W.elapsed);
  last.join(own);
  alone.push(own.alone), among.push(own.among);
}
void Waits::meet(std::vector<Warp>& warps) {
  Elapsed all;
  for (const Warp& W : warps)
    if (W.waiting) all.join(W.elapsed);
  for (Warp& W : warps)
    if (W.waiting) W.elapsed = all;
}
void Waits::look(Machine& M, u64 address, u32 bytes) const {
  if (!waits) return;
  f64& own = M.cta->warps[M.warp].elapsed.among;
  for (u64 word = address >> 2; word <= (address + bytes - 1) >> 2; ++word) {
    const auto found = words.find(word);
    if (found != words.end() && found->second.block != M.block_number())
      own = greatest(own, found->second.among + link);
  }
}
void Waits::leave(const Machine& M, u64 address, u32 bytes, bool updates) {
  const f64 own = M.cta->warps[M.warp].elapsed.among;
  for (u64 word = address >> 2; word <= (address + bytes - 1) >> 2; ++word) {
    Left& left = words.try_emplace(word, Left{0, 0}).first->second;
    if (updates) left = {M.block_number(), greatest(left.among, own)};
    else if (left.block != M.block_number()) left = {M.block_number(), own};
  }
}
