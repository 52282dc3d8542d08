// SPDX-License-Identifier: Apache-2.0
#pragma once
// Helper for tests that start servers in containers.

#include <cstdio>

#include "checkpoint/container.h"

namespace crane::test {

// Returns whether containers can be started; if not, prints why the test is skipped.
inline bool containers_work(const char* test) {
  const auto can = checkpoint::Container::available();
  if (!can) std::printf("SKIPPED: %s: %s\n", test, can.error().what);
  return can.ok();
}

}  // namespace crane::test
