// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operation codes for the schedule hash: the row numbers of the table, `Op::name`.

#include <cstdint>

namespace crane {

enum class Op : std::uint32_t {
  kNone = 0,
#define CRANE_NAME(name) name,
#include "runtime/preload/ground/interposed_names.def"
  // Operations that are not functions of libc.
  kThreadStart,
  kThreadEnd,
  kSignalDelivery,
  kForkDone,
  kChildStart,
  kExecDone,
  kSoftBarrier,
  kSection,
  kStopped,
  kSlice,
  kCount,
};

}  // namespace crane
