// SPDX-License-Identifier: Apache-2.0
#pragma once
// One declaration per row of the table; a row without a definition fails to link.
//
// A wrapper runs with InsideCrane::inside() true in a thread that has a slot. The INTERPOSE_OWN,
// _LATE and _LIST rows are exceptions: they check both themselves.

#include <cstdarg>

#include "runtime/preload/ground/types.h"

namespace crane::wrap {

#define INTERPOSE(kind, name, result, params, args, version) result name params;
#define INTERPOSE_VOID(kind, name, params, args, version) void name params;
#define INTERPOSE_NORETURN(kind, name, params, args, version) [[noreturn]] void name params;
#define INTERPOSE_VARIADIC(kind, name, result, params, last, wrapped, given, args, version) \
  result name wrapped;
#define INTERPOSE_LIST(kind, name, result, params, last, wrapped, args, version) \
  result name wrapped;
#define INTERPOSE_LATE(kind, name, result, params, args, version) result name params;
#define INTERPOSE_JUMP(kind, name, result, params, args, version)
#define INTERPOSE_OWN(kind, name, result, params, args, version) result name params;
#define INTERPOSE_SECOND(kind, name, function)
#include "runtime/preload/ground/interposed.def"

}  // namespace crane::wrap
