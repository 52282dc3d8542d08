// SPDX-License-Identifier: Apache-2.0
#pragma once
// For tests that start servers in containers.

#include <cstdio>

#include "checkpoint/container.h"

namespace crane::test {

// Otherwise the test is skipped, and says why.
inline bool containers_work(const char* test) {
  const auto can = checkpoint::Container::available();
  if (!can) std::printf("SKIPPED: %s: %s\n", test, can.error().what);
  return can.ok();
}

}  // namespace crane::test
