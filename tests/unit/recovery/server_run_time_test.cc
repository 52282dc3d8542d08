// SPDX-License-Identifier: Apache-2.0
// GOAL    The time that a server ran on processors is known, and never decreases.
// METHOD  Lines of /proc as the kernel writes them, and a process that computes.
// CHECKS  Fields after any name; the sum over processes that start and end.
#include "proxy/host/recovery/server_run_time.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <ctime>

#include "tests/unit/waiting.h"

using crane::node::ServerRunTime;
using crane::node::ticks_of;

TEST_CASE("server run time: the four fields, whatever the name is", "[runtime]") {
  const char* rest = " S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 15 16 17 18 19";
  CHECK(ticks_of(std::string("12 (redis)") + rest) == 127);
  CHECK(ticks_of(std::string("12 (a) b 1 2 (c)") + rest) == 127);
  CHECK_FALSE(ticks_of("12 (redis) S 1 2 3"));
  CHECK_FALSE(ticks_of("12 (redis) S 1 2 3 4 5 6 7 8 9 10 x 20 3 4 5"));
  CHECK_FALSE(ticks_of("12 redis S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 5"));
  CHECK_FALSE(ticks_of(""));
}

TEST_CASE("server run time: processes that start and end", "[runtime][processes]") {
  ServerRunTime time;
  CHECK(time.look({}) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    while (std::clock() < CLOCKS_PER_SEC / 10) continue;
    for (;;) ::pause();
  }
  std::int64_t ran = 0;
  CHECK(crane::test::eventually(
      [&] {
        return (ran = time.look({{1, child}})) >= 90'000'000;
      },
      60'000));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(time.look({{1, child}}) == ran);
  CHECK(time.look({{1, ::getpid()}}) >= ran);
}
