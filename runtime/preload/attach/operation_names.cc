// SPDX-License-Identifier: Apache-2.0
// The names of the operations, for displays of remembered turns. They are put into the segment,
// because the node does not know this library's table.
#include <cstring>

#include "runtime/preload/attach/operation_names.h"
#include "runtime/preload/ground/operations.h"
#include "runtime/preload/self/thread.h"

namespace crane {
namespace {

constexpr char kNames[] =
    "none\0"
#define CRANE_NAME(name) #name "\0"
#include "runtime/preload/ground/interposed_names.def"
    "thread start\0thread end\0signal delivery\0fork done\0child start\0exec "
    "done\0soft-barrier\0section\0stopped\0slice";

constexpr std::size_t count() noexcept {
  std::size_t n = 0;
  for (const char c : kNames) n += c == '\0' ? 1 : 0;
  return n;
}
static_assert(count() == static_cast<std::size_t>(Op::kCount), "a name for each operation");
static_assert(sizeof kNames <= dmt::kOperationNamesBytes);

}  // namespace

void publish_operation_names() noexcept {
  if (without_turn().operation_names[0] == '\0') {
    std::memcpy(without_turn().operation_names, kNames, sizeof kNames);
  }
}

}  // namespace crane
