// SPDX-License-Identifier: Apache-2.0
#include "dmt/base/assert.h"

#include <cstdlib>

#include "dmt/base/log.h"

namespace crane {

void assertion_failed(const char* expression, const char* file, int line) noexcept {
  { Message() << "assertion failed: " << expression << ": " << file << ":" << line; }
  std::abort();
}

}  // namespace crane
