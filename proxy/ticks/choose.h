// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses a tick point (dmt/slices.h) for a computation, from the instructions that its thread
// executed one after the other for a while.
//
// A good point is executed again and again, but not much more often than needed: the rarest
// instruction that comes at least kPassagesMin times and is never missing for long.  It must be one
// that a stub can stand for (runtime/preload/turn/tick_stub.h): best a call, of which only the
// target changes; else an instruction of 5 bytes or more; else several, of which no jump leads to
// any but the first.
//
// Threads: any; pure functions.
// INVARIANT CHOOSE-1  No executed step, and no direct jump of the object's code, leads to an
//               instruction of the point but the first; where a table of jumps is near, there is
//               only one.

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
  std::uint64_t build = 0;  // the first bytes of its build id; 0: it has none
  std::uint64_t base = 0;   // what its addresses are relative to
  std::uint64_t begin = 0;  // address of the first byte of `bytes`
  std::span<const unsigned char> bytes;
  std::string name;           // the file's
  bool may_be_point = false;  // false: libc, ld.so, Crane, or memory of no file
};

// The code that holds `address`; null: there is none that can be read.
using CodeAt = std::function<const Code*(std::uint64_t address)>;

struct Choice {
  std::optional<TickPoint> point;
  std::string where;  // for people: the object and the address in it; or why there is no point
};

inline constexpr std::size_t kPassagesMin = 3;

// `steps`: the addresses of the instructions, in the order of their execution.  `known`: points
// that are, or will be; one of them is the choice where it does.
Choice choose(std::span<const std::uint64_t> steps, std::span<const TickPoint> known,
              const CodeAt& code_at);

}  // namespace crane::ticks
