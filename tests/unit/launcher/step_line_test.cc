// SPDX-License-Identifier: Apache-2.0
// GOAL    While a command waits, standard error names its present step and the time.
// METHOD  A process whose standard error is a pipe or a terminal of this test.
// CHECKS  The text; a terminal's line is removed at the end, a pipe gets whole lines.
#include "runtime/launcher/ctl/step_line.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/launcher/ctl/ctl.h"

namespace crane::launcher {
namespace {

constexpr int kPatienceMs = 60'000;

// What the process wrote until it had shown `line`, and at its end.
std::string written(int ours, int theirs, const std::string& line) {
  int go[2];
  REQUIRE(::pipe2(go, O_CLOEXEC) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(theirs, STDERR_FILENO);
    ::close(go[1]);
    StepLine steps("upgrade of shop");
    steps.show("step 1 of 4");  // too short to be shown
    steps.show(upgrade_step("asked"));
    char none;
    (void)!::read(go[0], &none, 1);  // until the parent has seen it
    steps.clear();
    setup::print_message("the end");
    ::_exit(0);
  }
  ::close(theirs);
  std::string text;
  pollfd more{ours, POLLIN, 0};
  while (::poll(&more, 1, kPatienceMs) == 1) {
    char piece[1000];
    const ssize_t n = ::read(ours, piece, sizeof piece);
    if (n <= 0) break;
    text.append(piece, static_cast<std::size_t>(n));
    if (text.find(line) == std::string::npos || go[1] < 0) continue;
    ::close(go[1]);
    go[1] = -1;
  }
  ::close(go[0]);
  ::close(ours);
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  return text;
}

}  // namespace

TEST_CASE("a step that lasts is named with its time, in whole lines of a pipe", "[progress]") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const std::string text =
      written(ends[0], ends[1], "upgrade of shop, step 2 of 4, the old servers end: 1 s\n");
  INFO(text);
  CHECK(text.find("step 1") == std::string::npos);
  CHECK(text.find('\r') == std::string::npos);
  CHECK(text.ends_with(": the end\n"));
}

TEST_CASE("a step that lasts is a line of a terminal, which is removed at the end", "[progress]") {
  const int ours = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(ours >= 0);
  REQUIRE(::grantpt(ours) == 0);
  REQUIRE(::unlockpt(ours) == 0);
  const int theirs = ::open(::ptsname(ours), O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(theirs >= 0);
  const std::string text =
      written(ours, theirs, "\rupgrade of shop, step 2 of 4, the old servers end: 1 s\x1b[K");
  INFO(text);
  const std::size_t removed = text.rfind("\r\x1b[K");
  REQUIRE(removed != std::string::npos);
  CHECK(text.find("the end") > removed);
  CHECK(text.find("upgrade", removed) == std::string::npos);
}

TEST_CASE("a decided upgrade waits for nothing", "[progress]") {
  for (const char* state : {"none", "kept", "rolled back", "unknown"}) {
    CHECK(std::string(upgrade_step(state)).empty());
  }
  CHECK(std::string(upgrade_step("trial")) != upgrade_step("failed"));
}

}  // namespace crane::launcher
