// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses a tick point (dmt/slices.h) for a computation, from successive instructions that its
// thread has executed.
//
// A good point is executed again and again, but not much more often than needed: the rarest
// instruction that occurs at least kPassagesMin times and is never absent for long.  A stub must be
// able to replace it (runtime/preload/turn/tick_stub.h).  Best is a call, of which only the target
// changes; second best an instruction of 5 bytes or more; otherwise several instructions, if jumps
// lead only to the first.
//
// Threads: any; pure functions.
// INVARIANT CHOOSE-1  No executed step, and no direct jump in the object's code, leads to an
//               instruction of the point except the first.  Near a jump table a point has only one
//               instruction.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "dmt/sequence/entry.h"

namespace crane::ticks {

// The code of an object of the process.
struct Code {
  std::uint64_t build = 0;  // the first bytes of its build id; 0: none
  std::uint64_t base = 0;   // its addresses are relative to this one
  std::uint64_t begin = 0;  // address of the first byte of `bytes`
  std::span<const unsigned char> bytes;
  std::string name;           // of the file
  bool may_be_point = false;  // false: libc, ld.so, Crane, or memory of no file
};

// The code that contains `address`; nullptr: none that can be read.
using CodeAt = std::function<const Code*(std::uint64_t address)>;

struct Choice {
  std::optional<TickPoint> point;
  std::string where;  // for messages: object and address in it, or why there is no point
};

inline constexpr std::size_t kPassagesMin = 3;

// `steps`: the addresses of the instructions, in order of execution.  `known`: existing and
// proposed points; the choice is one of them if possible.
Choice choose(std::span<const std::uint64_t> steps, std::span<const TickPoint> known,
              const CodeAt& code_at);

}  // namespace crane::ticks
