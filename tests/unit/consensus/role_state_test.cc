// SPDX-License-Identifier: Apache-2.0
// GOAL    The state of a role is gone when the role is left.
// METHOD  RoleState alone, entered and left; misuse in a child process, which must abort.
// CHECKS  ROLE-1.
#include "consensus/core/role_state.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace crane::consensus::core;

namespace {

struct LeaderKnowledge {
  int something = 7;
};

template <typename Misuse>
bool aborts(Misuse misuse) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGABRT, SIG_DFL);  // not the test framework's handler, which would report it
    close(STDERR_FILENO);
    misuse();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace

TEST_CASE("a role begins with fresh state each time", "[role][ROLE-1]") {
  RoleState<LeaderKnowledge> state;
  CHECK_FALSE(state.entered());
  state.enter();
  CHECK(state->something == 7);
  state->something = 8;
  state.leave();
  CHECK_FALSE(state.entered());
  state.enter();
  CHECK(state->something == 7);
}

TEST_CASE("state is not readable outside of its role", "[role][ROLE-1]") {
  RoleState<LeaderKnowledge> state;
  CHECK(aborts([&] { state->something = 1; }));
  state.enter();
  CHECK_FALSE(aborts([&] { state->something = 1; }));
  CHECK(aborts([&] { state.enter(); }));
}
