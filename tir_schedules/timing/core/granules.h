// What of L2 holds the lines of one SM: halves of lines, of which the least recently used ones leave first.
#pragma once
#include "abi.h"
#include <list>
#include <unordered_map>

struct Granules {
  struct One {
    u64 number, ready;  // ready: when L2 has it
    double bytes;       // what it takes of this SM's share
    bool dirty;
  };
  std::list<One> kept;  // the latest first
  std::unordered_map<u64, std::list<One>::iterator> at;
  double held = 0, most;
  explicit Granules(double most) : most(most) {}

  // The granule, and whether it was not there.
  std::pair<One*, bool> use(u64 number, double bytes) {
    const auto found = at.find(number);
    if (found != at.end()) {
      kept.splice(kept.begin(), kept, found->second);
      return {&kept.front(), false};
    }
    kept.push_front({number, 0, bytes, false});
    at[number] = kept.begin(), held += bytes;
    while (held > most && kept.size() > 4)  // the two of a line that is asked for, and of the one before it, stay
      held -= kept.back().bytes, at.erase(kept.back().number), kept.pop_back();
    return {&kept.front(), true};
  }
};
