// SPDX-License-Identifier: Apache-2.0
#pragma once
// The last line that libcrane.so wrote to runtime.log in the server.  Read when the replica ends,
// because the next start replaces runtime.log.

#include <string>

#include "proxy/host/config.h"

namespace crane::node {

// " (its last line: ...)", or "" if there is none.
std::string last_words(const Config& config);

}  // namespace crane::node
