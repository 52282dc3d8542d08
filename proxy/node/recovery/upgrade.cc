// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/recovery/upgrade.h"

namespace crane::node {

const char* name(Upgrade::State state) noexcept {
  constexpr const char* kNames[] = {"none", "asked", "trial", "kept", "failed", "rolled back"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace crane::node
