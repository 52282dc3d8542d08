// SPDX-License-Identifier: Apache-2.0
// The names of the operations, for whoever shows remembered turns: put into the segment, because
// the node does not know this library's table.
#include <cstring>

#include "runtime/init.h"
#include "runtime/operations.h"
#include "runtime/thread.h"

namespace crane {
namespace {

constexpr char kNames[] =
    "none\0"
#define INTERPOSE(kind, name, result, params, args, version) #name "\0"
#define INTERPOSE_VOID(kind, name, params, args, version) #name "\0"
#define INTERPOSE_NORETURN(kind, name, params, args, version) #name "\0"
#define INTERPOSE_VARIADIC(kind, name, result, params, last, wrapped, given, args, version) \
#name "\0"
#define INTERPOSE_LIST(kind, name, result, params, last, wrapped, args, version) #name "\0"
#define INTERPOSE_LATE(kind, name, result, params, args, version) #name "\0"
#define INTERPOSE_JUMP(kind, name, result, params, args, version) #name "\0"
#define INTERPOSE_OWN(kind, name, result, params, args, version) #name "\0"
#include "runtime/interposed.def"
#undef INTERPOSE
#undef INTERPOSE_VOID
#undef INTERPOSE_NORETURN
#undef INTERPOSE_VARIADIC
#undef INTERPOSE_LIST
#undef INTERPOSE_LATE
#undef INTERPOSE_JUMP
#undef INTERPOSE_OWN
    "thread start\0thread end\0signal delivery\0fork done\0child start\0exec "
    "done\0line-up\0section";

constexpr std::size_t count() noexcept {
  std::size_t n = 0;
  for (const char c : kNames) n += c == '\0' ? 1 : 0;
  return n;
}
static_assert(count() == static_cast<std::size_t>(Op::kCount), "a name for each operation");
static_assert(sizeof kNames <= dmt::kOperationNamesBytes);

}  // namespace

void publish_operation_names() noexcept {
  if (world->operation_names[0] == '\0') {
    std::memcpy(world->operation_names, kNames, sizeof kNames);
  }
}

}  // namespace crane
