// printf and assert. Both are calls of functions that CUDA has: vprintf(format, arguments), in which each
// argument is aligned to its size, and __assertfail.
#include <string>
#include "exec/exec.h"

// A string of the kernel's, up to its zero. False after a finding.
static bool read_string(Machine& M, const MicroOp& op, int lane, u64 address, std::string& text) {
  for (;; ++address) {
    const u8* byte = at_generic(M, address, 1, op, lane, READ);
    if (!byte) return false;
    if (!*byte || text.size() > 1 << 20) return true;
    text += (char)*byte;
  }
}
struct Arguments {
  Machine& M;
  const MicroOp& op;
  int lane;
  u64 address;
  u32 read = 0;
  bool sound = true;

  template <class T> T next() {
    address = (address + sizeof(T) - 1) & ~(u64)(sizeof(T) - 1);
    const u8* place = sound ? at_generic(M, address, sizeof(T), op, lane, READ) : nullptr;
    T value{};
    sound = place != nullptr;
    if (sound) memcpy(&value, place, sizeof(T));
    address += sizeof(T), ++read;
    return value;
  }
};
template <class... T> static std::string formatted(const std::string& directive, T... values) {
  const int bytes = snprintf(nullptr, 0, directive.c_str(), values...);
  std::string text(bytes > 0 ? bytes : 0, 0);
  snprintf(&text[0], text.size() + 1, directive.c_str(), values...);
  return text;
}
// A directive whose stars are already numbers. length: "", "h", "hh", "l" or "ll", of which both last are 64
// bits.
static std::string converted(Arguments& from, const std::string& flags, const std::string& length,
                             char kind) {
  const bool wide = length[0] == 'l' || length == "j" || length == "z" || length == "t";
  const std::string narrow = flags + (length[0] == 'h' ? length : "") + kind, long_ = flags + "ll" + kind;
  switch (kind) {
    case 'd': case 'i': case 'u': case 'o': case 'x': case 'X':
      return wide ? formatted(long_, from.next<long long>()) : formatted(narrow, from.next<s32>());
    case 'c': return formatted(flags + kind, from.next<s32>());
    case 'p': return formatted(flags + kind, (void*)from.next<u64>());
    case 's': {
      std::string text;
      const u64 address = from.next<u64>();
      if (!address) text = "(null)";
      else if (from.sound) from.sound = read_string(from.M, from.op, from.lane, address, text);
      return formatted(flags + kind, text.c_str());
    }
    default: return formatted(flags + kind, from.next<f64>());
  }
}
static std::string printed(Arguments& from, const std::string& format) {
  std::string text;
  for (size_t k = 0; k < format.size() && from.sound;) {
    if (format[k] != '%') {
      text += format[k++];
      continue;
    }
    const size_t begins = k++;
    if (format[k] == '%') {
      text += format[k++];
      continue;
    }
    std::string flags = "%", length;
    auto number = [&] {
      if (format[k] == '*') flags += std::to_string(from.next<s32>()), ++k;
      else
        while (isdigit((u8)format[k])) flags += format[k++];
    };
    while (format[k] && strchr("-+ #0", format[k])) flags += format[k++];
    number();
    if (format[k] == '.') {
      flags += format[k++];
      const size_t before = flags.size();
      number();
      if (flags[before] == '-') flags.resize(before - 1);  // a negative precision is none
    }
    while (format[k] && strchr("hljztL", format[k])) length += format[k++];
    const char kind = format[k];
    if (kind && strchr("diuoxXcspfFeEgGaA", kind)) text += converted(from, flags, length, kind), ++k;
    else text += format.substr(begins, k - begins);  // as it stands
  }
  return text;
}
static void say(Said& said, const std::string& text) {
  const u32 room = said.limit - said.bytes, bytes = least<u64>(room, text.size());
  memcpy(said.text + said.bytes, text.data(), bytes);
  said.bytes += bytes, said.cut |= bytes < text.size();
}
// Its result is how many arguments were printed.
static void execute(Machine& M, Warp& W, const ops::CallPrintf& op) {
  M.interacts = true;  // what is printed has an order
  if (!M.alone) return;
  ACTIVE(W.active, {
    std::string format;
    const u64 address = argument(M, l, op.arguments(), 8);
    Arguments from{M, op, l, argument(M, l, op.arguments() + 8, 8)};
    s32 result = -1;
    if (address && read_string(M, op, l, address, format)) {
      say(*M.launch.said, printed(from, format));
      result = from.read;
    }
    give_back(M, l, op.result(), (u32)result, 4);
  })
}

// Its arguments are expression, file, line, function, bytes of a character.
static void execute(Machine& M, Warp& W, const ops::CallAssert& op) {
  ACTIVE(W.active, {
    stop_launch(M);
    if (!report(M, ASSERTION, op.line(), l) || !M.alone) continue;
    std::string text[3];
    const u32 at[] = {0, 8, 24};
    for (int k = 0; k < 3; ++k) {
      const u64 address = argument(M, l, op.arguments() + at[k], 8);
      if (address) read_string(M, op, l, address, text[k]);
    }
    if (*M.launch.said->message) continue;
    const u32 t = M.thread_of(l), x = M.launch.block[0], y = M.launch.block[1], *b = M.cta->index;
    const std::string message = formatted(
        "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.", text[1].c_str(),
        (u32)argument(M, l, op.arguments() + 16, 4), text[2].c_str(), b[0], b[1], b[2], t % x, t / x % y,
        t / (x * y), text[0].c_str());
    const u64 bytes = least<u64>(M.launch.said->message_limit - 1, message.size());
    memcpy(M.launch.said->message, message.data(), bytes), M.launch.said->message[bytes] = 0;
  })
}
