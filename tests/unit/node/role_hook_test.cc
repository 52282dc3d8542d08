// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/role_hook.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>

using crane::node::RoleHook;

namespace {

// A script in its own directory, and a loop.
struct World {
  std::string dir = "/tmp/crane-hook-XXXXXX";
  event_base* base = event_base_new();

  World() { REQUIRE(::mkdtemp(dir.data()) != nullptr); }
  ~World() {
    event_base_free(base);
    for (const char* name : {"/hook", "/told", "/go"}) ::unlink((dir + name).c_str());
    ::rmdir(dir.c_str());
  }
  std::string script(const std::string& body) const {
    std::ofstream(dir + "/hook") << "#!/bin/sh\n" << body << "\n";
    REQUIRE(::chmod((dir + "/hook").c_str(), 0755) == 0);
    return dir + "/hook";
  }
  std::string hook_output() const {
    std::ifstream in(dir + "/told");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool until(const std::function<bool()>& done) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      const timeval step{0, 10'000};
      event_base_loopexit(base, &step);
      event_base_dispatch(base);
    }
    return done();
  }
};

}  // namespace

TEST_CASE("role hook: one runs at a time, and the last run gets the newest state", "[node][hook]") {
  World w;
  const std::string wait = "echo $CRANE_ROLE >> " + w.dir + "/told; while ! [ -e " + w.dir +
                           "/go ]; do sleep 0.01; done";
  RoleHook hook(w.base, w.script(wait));
  hook.changed({"CRANE_ROLE=follower"});
  REQUIRE(w.until([&] { return w.hook_output() == "follower\n"; }));
  hook.changed({"CRANE_ROLE=candidate"});
  hook.changed({"CRANE_ROLE=leader"});
  CHECK(hook.running());
  CHECK(w.hook_output() == "follower\n");
  std::ofstream(w.dir + "/go") << "";
  REQUIRE(w.until([&] { return !hook.running() && w.hook_output() == "follower\nleader\n"; }));
}

TEST_CASE("role hook: an absent or failing hook has no effect", "[node][hook]") {
  World w;
  RoleHook none(w.base, "");
  none.changed({"CRANE_ROLE=leader"});
  CHECK_FALSE(none.running());
  RoleHook absent(w.base, w.dir + "/absent");
  absent.changed({"CRANE_ROLE=leader"});
  CHECK(w.until([&] { return !absent.running(); }));
  RoleHook fails(w.base, w.script("exit 3"));
  fails.changed({"CRANE_ROLE=leader"});
  CHECK(w.until([&] { return !fails.running(); }));
  fails.changed({"CRANE_ROLE=follower"});
  CHECK(w.until([&] { return !fails.running(); }));
}
