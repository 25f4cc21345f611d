// One warp's way through the SASS, guided by the basic blocks of PTX that it executed; see paths.py.
#include "abi.h"
#include <algorithm>
#include <vector>

namespace {

typedef std::vector<s32> Numbers;

// How well a block fits to what a warp meets next, and by how many landmarks.
struct Fit {
  double share;
  u32 count;
  bool operator>(const Fit& other) const {
    return share != other.share ? share > other.share : count > other.count;
  }
};

struct Walk {
  const WalkRules& rules;
  const Stretch* stretches;
  const Mark* marks;
  const Turned* blocks;  // what is known of each basic block of PTX
  const MadeBy* made;
  u32 entry, stretch_count, block_count;

  struct Turn {
    u32 block, offset, lanes;  // offset: of its lines in `met`
    bool seen = false;
    std::vector<std::pair<u32, u32>> ranges;  // of its accesses
  };
  std::vector<Turn> turns;  // the basic blocks of PTX that it executed and that have landmarks
  std::vector<u16> met;     // how often the walk has met each line of each turn
  std::vector<u32> seen;    // stamps of lines
  std::vector<u8> used;     // accesses
  std::vector<u8> visited;  // blocks of PTX that the walk has come to
  s64 place = 0;            // the last turn that the walk has met
  s64 latest = 0;           // the last that has accesses, barriers or products
  u32 stamp = 0;
  Numbers numbers, accesses, others;
  u64 found = 0, missed = 0, left = 0;
  std::vector<s32> local;  // number of a block of PTX in the list at hand
  std::vector<std::vector<s64>> lists;

  void executed(const Executed* steps, u64 count) {
    for (u64 k = 0; k < count; ++k) {
      const Executed& step = steps[k];
      const Turned& block = blocks[step.block];
      if (!block.marked) continue;
      const s64 tried = block.polled ? tried_in_vain(step.lanes) : -1;
      if (tried >= 0 && (step.block == turns[tried].block || block.single)) {
        turns[tried].ranges.push_back({step.first, step.end});  // the try that was not in vain
        forget(tried + 1, step.lanes);
        continue;
      }
      Turn turn;
      turn.block = step.block, turn.lanes = step.lanes;
      turn.ranges.push_back({step.first, step.end});
      turns.push_back(turn);
    }
    rejoin();
    u32 offset = 0;
    for (Turn& turn : turns) turn.offset = offset, offset += blocks[turn.block].lines;
    met.assign(offset, 0), seen.assign(offset, 0);
    local.assign(block_count, -1), visited.assign(block_count, 0);
  }
  // The last turn of some lanes, where it is a wait for an mbarrier whose phase was not over yet, and nothing with an
  // effect has come since; else -1.
  s64 tried_in_vain(u32 lanes) const {
    for (s64 at = (s64)turns.size() - 1; at >= 0; --at) {
      const Turn& turn = turns[at];
      if (!(turn.lanes & lanes)) continue;
      if (blocks[turn.block].polled) {
        for (auto [first, end] : turn.ranges)
          for (u32 row = first; row < end; ++row)
            if (made[row].kind & rules.passed) return -1;
        return at;
      }
      if (blocks[turn.block].firm) return -1;
    }
    return -1;
  }
  // Lanes that do not wait for an mbarrier may have gone on while others of their warp waited. ptxas has them meet
  // behind the wait, so what both execute until they are together again is one turn.
  void rejoin() {
    std::vector<Turn> joined;
    for (u64 k = 0; k < turns.size();) {
      const bool waited = blocks[turns[k].block].polled;
      const u32 waiting = turns[k].lanes;
      joined.push_back(turns[k++]);
      u64 end_of_others = k;
      while (waited && end_of_others < turns.size() && !(turns[end_of_others].lanes & waiting)) ++end_of_others;
      u64 end = end_of_others;
      while (waited && end < turns.size() && !(turns[end].lanes & ~waiting)) ++end;
      const bool together = end < turns.size() && turns[end].lanes & waiting && turns[end].lanes & ~waiting;
      if (k == end_of_others || end_of_others == end || !together) continue;
      join({turns.begin() + k, turns.begin() + end_of_others}, {turns.begin() + end_of_others, turns.begin() + end}, joined);
      k = end;
    }
    turns.swap(joined);
  }
  // The turns of two groups of lanes, those of their longest common subsequence together.
  void join(const std::vector<Turn>& some, const std::vector<Turn>& others, std::vector<Turn>& joined) const {
    const u64 rows = some.size(), columns = others.size();
    std::vector<std::vector<u32>> common(rows + 1, std::vector<u32>(columns + 1, 0));
    for (u64 i = rows; i--;)
      for (u64 j = columns; j--;)
        common[i][j] = some[i].block == others[j].block ? common[i + 1][j + 1] + 1
                                                         : std::max(common[i + 1][j], common[i][j + 1]);
    for (u64 i = 0, j = 0; i < rows || j < columns;) {
      if (i < rows && j < columns && some[i].block == others[j].block) {
        joined.push_back(some[i++]);
        joined.back().lanes |= others[j].lanes;
        for (auto range : others[j++].ranges) joined.back().ranges.push_back(range);
      } else if (j == columns || (i < rows && common[i + 1][j] >= common[i][j + 1])) {
        joined.push_back(some[i++]);
      } else {
        joined.push_back(others[j++]);
      }
    }
  }
  void forget(u64 from, u32 lanes) {  // turns of some lanes
    const auto gone = [&](const Turn& turn) { return (turn.lanes & lanes) != 0; };
    turns.erase(std::remove_if(turns.begin() + from, turns.end(), gone), turns.end());
  }

  void run() {
    s32 at = entry;
    Numbers back;
    for (u64 limit = 64 * (turns.size() + stretch_count) + 1024; at >= 0 && limit; --limit) {
      take(stretches[at]);
      at = following(stretches[at], back);
    }
    for (const Turn& turn : turns) left += blocks[turn.block].firm && !turn.seen;
  }

  // The block behind a stretch; -1 at the end. back: where calls return to. Where lanes part, both ways are walked,
  // one after the other: the second where the first ends, or where lanes meet again.
  s32 following(const Stretch& stretch, Numbers& back) {
    if (stretch.kind == WALK_CALL) {
      if (stretch.conditional && ahead(stretch.behind) > ahead(stretch.target)) return stretch.behind;
      back.push_back(stretch.behind);
      return stretch.target;
    }
    if (stretch.kind == WALK_RET && !back.empty()) {
      const s32 to = back.back();
      back.pop_back();
      return to;
    }
    if (stretch.kind == WALK_EXIT_SOME && ahead(stretch.after[0]).share > 0) return stretch.after[0];
    if (stretch.kind == WALK_EXIT || stretch.kind == WALK_EXIT_SOME || !stretch.ways) return other_than(-1);
    if (stretch.kind == WALK_BSYNC) return other_than(stretch.after[0]);
    if (stretch.ways == 1) return stretch.after[0];
    const s32 target = stretch.after[0], other = stretch.after[1];
    const bool takes = ahead(target) > ahead(other);
    drop(target), drop(other);
    others.push_back(takes ? other : target);
    return takes ? target : other;
  }
  void drop(s32 block) { others.erase(std::remove(others.begin(), others.end(), block), others.end()); }

  // A block that a branch has not gone to, and that fits better to what the warp meets next; else this one.
  s32 other_than(s32 block) {
    s32 best = block;
    Fit fits = block >= 0 ? ahead(block) : Fit{to_come() ? 0 : rules.at_the_end, 0};
    for (u64 k = others.size(); k--;) {
      const Fit fit = ahead(others[k]);
      if (fit > fits && fit.count && fit.share > rules.weak) best = others[k], fits = fit;
    }
    if (best != block && best >= 0) drop(best);
    return best;
  }

  Fit ahead(s32 block) { return ahead(block, rules.depth); }

  // How well a block and what follows it fit to what the warp meets next: the share of landmarks that fit, times the
  // share of turns that they do not pass over; and their number.
  Fit ahead(s32 block, u32 depth) {
    const Stretch& stretch = stretches[block];
    const Mark* first = marks + stretch.ahead;
    const u32 count = stretch.ahead_count;
    u32 certain = 0, fitted = 0;
    for (u32 k = 0; k < count; ++k) certain += !first[k].optional;
    if (!certain) {
      const Stretch& last = stretches[stretch.ahead_last];
      if (!last.ways && to_come()) return {maybe_next(first, count) ? rules.weak : 0, 0};
      if (!last.ways || !depth) return {last.ways ? 0 : rules.at_the_end, 0};
      Fit best = ahead(last.after[0], depth - 1);
      if (last.ways > 1) {
        const Fit other = ahead(last.after[1], depth - 1);
        if (other > best) best = other;
      }
      const Fit ends{rules.at_the_end, 0};  // all lanes may leave at an exit with a predicate
      if (last.kind == WALK_EXIT_SOME && !to_come() && ends > best) best = ends;
      return best;
    }
    std::vector<s64> fits;
    fitting(first, count, fits);
    bool here = false;
    for (u32 k = 0; k < count; ++k) {
      fitted += !first[k].optional && fits[k] >= 0;
      here |= fits[k] >= 0 && fits[k] <= place;
    }
    std::vector<s64> known_turns = known(first, count, fits), reached;
    for (s64 turn : known_turns)
      if (turn > place) reached.push_back(turn);
    double skipped = 0;
    u64 next = 0;
    for (s64 turn = place + 1; !reached.empty() && turn < reached.back(); ++turn) {
      if (turn == reached[next]) {
        ++next;
        continue;
      }
      if (turns[turn].seen) continue;
      skipped += blocks[turns[turn].block].firm ? 1 : lone(turn) ? 0 : rules.weak;
    }
    const double hits = reached.size(), passed = !reached.empty() ? hits / (hits + skipped) : here ? 1 : rules.weak;
    return {(double)fitted / certain * passed, fitted};
  }

  // Whether the warp may meet what it meets next in landmarks that all depend on predicates.
  bool maybe_next(const Mark* first, u32 count) {
    std::vector<s64> fits;
    fitting(first, count, fits);
    return std::any_of(fits.begin(), fits.end(), [](s64 fit) { return fit >= 0; });
  }
  // Whether the warp still meets accesses, barriers or products.
  bool to_come() const {
    for (u64 turn = place + 1; turn < turns.size(); ++turn)
      if (blocks[turns[turn].block].firm && !turns[turn].seen) return true;
    return false;
  }
  bool lone(s64 turn) const {
    const Turned& block = blocks[turns[turn].block];
    return !block.firm && block.lines <= rules.lone;
  }
  // Whether the warp has met what lies between a turn and an earlier one; lone instructions do not count.
  bool is_next(s64 turn, s64 last) const {
    for (s64 each = last + 1; each < turn; ++each)
      if (!turns[each].seen && !lone(each)) return false;
    return true;
  }

  // The turns of which a stretch has more than a few landmarks, as ptxas may move a few ahead; in order.
  std::vector<s64> known(const Mark* first, u32 count, const std::vector<s64>& fits) {
    std::vector<s64> each;
    ++stamp;
    for (u32 k = 0; k < count; ++k) {
      if (fits[k] < 0) continue;
      u32& mark = seen[turns[fits[k]].offset + first[k].slot];
      if (mark == stamp) continue;
      mark = stamp, each.push_back(fits[k]);
    }
    std::sort(each.begin(), each.end());
    std::vector<s64> result;
    for (u64 k = 0, end; k < each.size(); k = end) {
      for (end = k; end < each.size() && each[end] == each[k];) ++end;
      const Turned& block = blocks[turns[each[k]].block];
      const u64 times = end - k;
      if ((block.firm && 8 * times >= block.lines) || (2 * times > block.lines && block.lines > 1) ||
          is_next(each[k], place))
        result.push_back(each[k]);
    }
    return result;
  }

  // The last turn that a stretch leads to. What is not an access, barrier or product may be moved ahead altogether: it
  // leads to the next turn alone.
  s64 reached(const Mark* first, u32 count, const std::vector<s64>& fits) {
    s64 last = place;
    for (s64 turn : known(first, count, fits))
      if (blocks[turns[turn].block].firm || is_next(turn, last)) last = std::max(last, turn);
    return last;
  }

  // For each landmark of a stretch of SASS the turn in which the warp meets it; -1 where it does not. One that depends
  // on a predicate is not met behind a turn of the next iteration, of a basic block that the walk has come to before.
  void fitting(const Mark* first, u32 count, std::vector<s64>& fits) {
    places(first, count, fits);
    s64 last = place;
    for (s64 fit : fits) last = std::max(last, fit);
    const auto among = [&](s64 turn) { return std::find(fits.begin(), fits.end(), turn) != fits.end(); };
    const auto known_block = [&](u32 block) {
      if (visited[block]) return true;
      for (s64 fit : fits)
        if (fit >= 0 && turns[fit].block == block) return true;
      return false;
    };
    for (s64 turn = place + 1; turn < last; ++turn) {
      const u32 block = turns[turn].block;
      if (!blocks[block].firm || turns[turn].seen || among(turn) || !known_block(block)) continue;
      for (u32 k = 0; k < count; ++k)
        if (first[k].optional && fits[k] > turn) fits[k] = -1;
      return;
    }
  }
  // The same whatever they depend on.
  void places(const Mark* first, u32 count, std::vector<s64>& fits) {
    fits.assign(count, -1);
    u64 copies = 0;
    u32 kinds = 0;
    for (u32 k = 0; k < count; ++k) {
      if (local[first[k].block] >= 0) continue;
      local[first[k].block] = kinds++, copies += first[k].copies;
    }
    if (lists.size() < kinds) lists.resize(kinds);
    for (u32 k = 0; k < kinds; ++k) lists[k].clear();
    const s64 end = std::min<s64>(turns.size(), place + 2 * copies + rules.skipped);
    for (s64 turn = std::max<s64>(0, place - rules.skipped); turn < end; ++turn) {
      if (turn < place && turns[turn].seen && turn != latest) continue;
      const s32 kind = local[turns[turn].block];
      if (kind >= 0) lists[kind].push_back(turn);
    }
    for (u32 k = 0; k < count; ++k) {
      const Mark& mark = first[k];
      u32 at = mark.nth / mark.per_turn;
      if (at >= mark.copies) continue;
      for (s64 turn : lists[local[mark.block]]) {
        if (met[turns[turn].offset + mark.slot] >= mark.per_turn) continue;
        if (!at--) {
          fits[k] = turn;
          break;
        }
      }
    }
    for (u32 k = 0; k < count; ++k) local[first[k].block] = -1;
  }

  // Executes a basic block of SASS.
  void take(const Stretch& stretch) {
    const u64 begin = numbers.size();
    for (u32 number = stretch.first; number < stretch.end; ++number) numbers.push_back(number);
    accesses.resize(numbers.size(), -1);
    if (!stretch.marks_count) return;
    const Mark* first = marks + stretch.marks;
    std::vector<s64> fits;
    fitting(first, stretch.marks_count, fits);
    for (u32 k = 0; k < stretch.marks_count; ++k) {
      const Mark& mark = first[k];
      if (fits[k] < 0) {
        missed += !mark.optional && mark.strong;
        continue;
      }
      Turn& turn = turns[fits[k]];
      found += mark.strong, turn.seen = true, visited[turn.block] = 1;
      if (blocks[turn.block].firm) latest = std::max(latest, fits[k]);
      ++met[turn.offset + mark.slot];
      accesses[begin + mark.number - stretch.first] = access(mark, turn);
    }
    place = reached(first, stretch.marks_count, fits);
  }

  // The access that an instruction makes in a turn; ptxas may have merged those of several lines. One with a predicate
  // has none where no lane takes part. What another instruction is named after is then not its own.
  s32 access(const Mark& mark, const Turn& turn) {
    s32 best = -1;
    s64 least = 0;
    if (!mark.kinds) return -1;
    for (auto [first, end] : turn.ranges)
      for (u32 row = first; row < end; ++row) {
        if (used[row] || !(made[row].kind & mark.kinds)) continue;
        if (mark.optional && made[row].named && made[row].line != mark.line) continue;
        const s64 far = std::abs((s64)made[row].line - mark.line);
        if (best < 0 || far < least) best = row, least = far;
      }
    if (best < 0) return best;
    used[best] = 1;
    // Some lanes of an address without a space came to shared memory, and others to global memory: the latter cost more.
    const bool both = best + 1 < (s64)used.size() && !used[best + 1] && made[best + 1].line == made[best].line &&
                      made[best + 1].kind & mark.kinds && made[best + 1].kind != made[best].kind;
    if (both) used[++best] = 1;
    return best;
  }
};

}  // namespace

extern "C" Walk* walk(const WalkRules* rules, const Stretch* stretches, u32 stretch_count, const Mark* marks,
                      const Turned* blocks, u32 block_count, const Executed* steps, u64 count, const MadeBy* made,
                      u64 made_count, u32 entry, u64* figures) {
  Walk* each = new Walk{*rules, stretches, marks, blocks, made, entry, stretch_count, block_count};
  each->used.assign(made_count, 0);
  each->executed(steps, count);
  each->run();
  figures[0] = each->numbers.size(), figures[1] = each->found, figures[2] = each->missed, figures[3] = each->left;
  return each;
}

// Copies what a walk has found, and ends it.
extern "C" void walked(Walk* each, s32* numbers, s32* accesses) {
  std::copy(each->numbers.begin(), each->numbers.end(), numbers);
  std::copy(each->accesses.begin(), each->accesses.end(), accesses);
  delete each;
}
