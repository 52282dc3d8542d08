// SPDX-License-Identifier: Apache-2.0
#pragma once
// The last line that libcrane.so wrote in the server.  Read at the replica's end: the next start
// replaces runtime.log.

#include <string>

#include "proxy/host/config.h"

namespace crane::node {

// " (it said: ...)", or "".
std::string last_words(const Config& config);

}  // namespace crane::node
