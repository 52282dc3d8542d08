// SPDX-License-Identifier: Apache-2.0
// GOAL    A node's descriptor table has its full size before the node has a second thread, and its
//         server gets the limit that the node was started with.
// METHOD  In a child with a low soft limit.
// CHECKS  The kernel's report on the child (DESCRIPTORS-1).
#include "proxy/host/descriptors.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "dmt/base/descriptor_limit.h"

using namespace crane::node;

namespace {

constexpr rlim_t kLow = 100;

rlim_t room() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (rlim_t size = 0; word == "FDSize:" && status >> size) return size;
  }
  return 0;
}

template <typename Check>
bool holds_in_child(Check check) {
  const pid_t child = ::fork();
  if (child == 0) {
    crane::limit_descriptors(kLow);
    ::_exit(check() ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

TEST_CASE("descriptors: the table has its full size from the start", "[descriptors]") {
  CHECK(holds_in_child([] { return room() < 4096; }));  // nor does this process have a large table
  CHECK(holds_in_child([] {
    (void)prepare_descriptors();
    return room() >= std::min(crane::descriptor_limit().rlim_max, kDescriptorsReady);
  }));
}

TEST_CASE("descriptors: the limit is raised, and the old one is restored for the server",
          "[descriptors]") {
  CHECK(holds_in_child([] {
    const rlim_t before = prepare_descriptors();
    const bool raised = crane::descriptor_limit().rlim_cur == crane::descriptor_limit().rlim_max;
    crane::limit_descriptors(before);
    return before == kLow && raised && crane::descriptor_limit().rlim_cur == kLow;
  }));
}
