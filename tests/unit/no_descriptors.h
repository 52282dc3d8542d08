// SPDX-License-Identifier: Apache-2.0
#pragma once
// While an object of this class exists, the test's process cannot open a descriptor.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <vector>

namespace crane::test {

class NoDescriptors {
 public:
  NoDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);  // all below are in use
    REQUIRE(next >= 0);
    held_.push_back(next);
    rlimit low = before_;
    low.rlim_cur = static_cast<rlim_t>(next) + 1;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
    REQUIRE(::open("/dev/null", O_RDONLY | O_CLOEXEC) < 0);
  }
  ~NoDescriptors() {
    (void)::setrlimit(RLIMIT_NOFILE, &before_);
    for (const int fd : held_) ::close(fd);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
  std::vector<int> held_;
};

}  // namespace crane::test
