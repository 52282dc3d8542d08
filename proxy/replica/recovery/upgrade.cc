// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/recovery/upgrade.h"

namespace crane::replica {

const char* name(Upgrade::State state) noexcept {
  constexpr const char* kNames[] = {"none", "asked", "trial", "kept", "failed", "rolled back"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace crane::replica
