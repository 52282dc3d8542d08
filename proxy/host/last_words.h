// SPDX-License-Identifier: Apache-2.0
#pragma once
// What libcrane.so said last in the server: its log goes with the replica's shared memory, which
// the next start of the replica makes anew.

#include <string>

#include "proxy/host/config.h"

namespace crane::node {

// " (it said: ...)", or "".
std::string last_words(const Config& config);

}  // namespace crane::node
