// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operation codes for the schedule hash: the row numbers of the table, `Op::name`.

#include <cstdint>

namespace crane {

enum class Op : std::uint32_t {
  kNone = 0,
#define INTERPOSE(kind, name, result, params, args, version) name,
#define INTERPOSE_VOID(kind, name, params, args, version) name,
#define INTERPOSE_NORETURN(kind, name, params, args, version) name,
#define INTERPOSE_VARIADIC(kind, name, result, params, last, wrapped, given, args, version) name,
#define INTERPOSE_LIST(kind, name, result, params, last, wrapped, args, version) name,
#define INTERPOSE_LATE(kind, name, result, params, args, version) name,
#define INTERPOSE_JUMP(kind, name, result, params, args, version) name,
#define INTERPOSE_OWN(kind, name, result, params, args, version) name,
#include "runtime/interposed.def"
#undef INTERPOSE
#undef INTERPOSE_VOID
#undef INTERPOSE_NORETURN
#undef INTERPOSE_VARIADIC
#undef INTERPOSE_LIST
#undef INTERPOSE_LATE
#undef INTERPOSE_JUMP
#undef INTERPOSE_OWN
  // Operations that are no function of libc.
  kThreadStart,
  kThreadEnd,
  kSignalDelivery,
  kForkDone,
  kChildStart,
  kExecDone,
  kLineUp,
  kSection,
  kCount,
};

}  // namespace crane
