// SPDX-License-Identifier: Apache-2.0
// GOAL    A group does not start if its shared memory could not grow to the required size.
// METHOD  Logs larger than any machine's memory.
// CHECKS  The status; the message contains the figures and what to do.
#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "runtime/launcher/options.h"
#include "runtime/setup/preflight.h"

using namespace crane::setup;

TEST_CASE("shared memory: without enough of it for replicas and logs the start is refused",
          "[launcher]") {
  CHECK(shared_memory_needed(3, 128) == std::uint64_t{3 * (64 + 128)} << 20);
  CHECK(check_shared_memory("/dev/shm", 1, 0).ok());
  const auto refused = check_shared_memory("/dev/shm", 3, 1U << 30);
  CHECK(status_of(refused) == Status::kDiskFull);
  for (const char* part : {"/dev/shm", "MiB free", "3221225664 MiB needed", "each of 3 replicas",
                           "remount,size=", "--ring-mb"}) {
    INFO(part << ": " << refused.error().text);
    CHECK(refused.error().text.find(part) != std::string::npos);
  }
  char directory[] = "/tmp/crane-room-XXXXXX";
  REQUIRE(mkdtemp(directory) != nullptr);
  crane::launcher::Options o;
  o.name = "test-small-" + std::to_string(getpid());
  o.dir = directory;
  o.ring_mb = 1U << 30;
  {
    GroupDirectories d;
    CHECK(status_of(d.create(o.place())) == Status::kDiskFull);
  }
  std::filesystem::remove_all(directory);
}
