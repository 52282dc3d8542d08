// SPDX-License-Identifier: Apache-2.0
#include "dmt/process_table.h"

namespace crane::dmt {
namespace {

// Objects named by kind and process, far above the counter of new_object; also those of signals.
constexpr std::uint64_t kChildObjects = 1ull << 62;

}  // namespace

std::uint64_t child_object(std::uint16_t parent) noexcept { return kChildObjects + parent; }

std::uint16_t find_process(const Layout& w, std::uint32_t pid) noexcept {
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    const ProcessRecord& p = w.processes[i];
    if (p.state != ProcessState::kFree && p.pid == pid) return i;
  }
  return kNoProcess;
}

}  // namespace crane::dmt
