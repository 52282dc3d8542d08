// SPDX-License-Identifier: Apache-2.0
// GOAL    While a node fetches or unpacks a checkpoint, before it answers requests, crane-ctl and
//         crane-run know how far it is.
// METHOD  The node's half in this process, or in one that ends; the reading half of crane-ctl.
// CHECKS  The file's content; that a file of an ended process counts for nothing.
#include "proxy/host/recovery/start_progress.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "dmt/base/clock.h"
#include "runtime/control/start_file.h"

using namespace crane;
using namespace crane::node;

namespace {

constexpr std::int64_t kPatienceNs = 30'000'000'000;

struct World {
  Config config;
  World() {
    config.dir = "/tmp/crane-start-XXXXXX";
    REQUIRE(::mkdtemp(config.dir.data()) != nullptr);
    config.replica = 2;
    std::filesystem::create_directories(config.replica_dir());
  }
  ~World() { std::filesystem::remove_all(config.dir); }
  // As crane-ctl and crane-run read it, if the node has this pid.
  nlohmann::json seen(pid_t node) const {
    return control::operations_of_start(config.replica_dir(), node);
  }
};

}  // namespace

TEST_CASE("a node that unpacks a checkpoint shows how far it is", "[processes][progress]") {
  const World w;
  CHECK(w.seen(0).empty());
  {
    StartProgress progress(w.config, "unpack", "the checkpoint 7.9");
    REQUIRE(w.seen(::getpid()).size() == 1);
    CHECK(w.seen(::getpid())[0]["of"] == 0);
    CHECK(w.seen(::getppid()).empty());  // another node's
    const auto report = progress.reported("/nowhere").bytes;
    // Until the interval between two writes has passed.
    const std::int64_t deadline_ns = monotonic_ns() + kPatienceNs;
    while (w.seen(0)[0]["of"] == 0 && monotonic_ns() < deadline_ns) report(300, 400);
    const control::Operation found = control::operation_in(w.seen(0)[0]);
    CHECK(found.name == "unpack");
    CHECK(found.step == "the checkpoint 7.9");
    CHECK(found.progress.done == 300);
    CHECK(found.progress.of == 400);
    CHECK(found.unit == control::Unit::kBytes);
    CHECK(w.seen(0)[0]["replica"] == 2);
    pid_t node = 0;
    (void)control::operations_of_start(w.config.replica_dir(), node);
    CHECK(node == ::getpid());
  }
  CHECK(w.seen(0).empty());
  CHECK(std::filesystem::is_empty(w.config.replica_dir()));
}

TEST_CASE("the file of a node that was killed counts for nothing", "[processes][progress]") {
  const World w;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto* const progress = new StartProgress(w.config, "fetch", "a checkpoint");
    ::_exit(progress == nullptr ? 1 : 0);
  }
  ::waitpid(child, nullptr, 0);
  CHECK(std::filesystem::exists(w.config.replica_dir() + "/" + control::kStartFile));
  CHECK(w.seen(0).empty());
  CHECK(w.seen(child).empty());
  { const StartProgress next(w.config, "fetch", "a checkpoint"); }
  CHECK(std::filesystem::is_empty(w.config.replica_dir()));
}
