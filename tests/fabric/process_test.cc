// SPDX-License-Identifier: Apache-2.0
// CHECKS  The state of a process in /proc: it runs, it is stopped, its main thread has ended, also
//         while the process still exists (WRITER-1).
#include "consensus/fabric/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/fabric/harness.h"

using namespace crane::consensus;

namespace {

pid_t child(void (*body)()) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    body();
    for (;;) ::pause();
  }
  return pid;
}

}  // namespace

TEST_CASE("process: a process that runs, is stopped, is killed and is gone", "[process]") {
  const pid_t pid = child([] {});
  CHECK_FALSE(process_stat(pid).main_thread_ended());
  CHECK_FALSE(process_stat(pid).stopped());
  CHECK_FALSE(process_stat(::getpid()).main_thread_ended());
  REQUIRE(::kill(pid, SIGSTOP) == 0);
  int status = 0;
  REQUIRE(::waitpid(pid, &status, WUNTRACED) == pid);
  CHECK(process_stat(pid).stopped());
  CHECK_FALSE(process_stat(pid).main_thread_ended());
  REQUIRE(::kill(pid, SIGKILL) == 0);
  siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT) == 0);
  const ProcessStat zombie = process_stat(pid);
  CHECK(zombie.main_thread_ended());
  CHECK((zombie.flags & ProcessStat::kExiting) != 0);  // the kernel sets it first
  CHECK_FALSE(zombie.stopped());
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(process_stat(pid).start == 0);
}

TEST_CASE("process: a main thread ends before the process does", "[process]") {
  const pid_t pid = child([] {
    pthread_t other;
    const auto waits = [](void*) -> void* {
      for (;;) ::pause();
    };
    if (::pthread_create(&other, nullptr, waits, nullptr) == 0) ::syscall(SYS_exit, 0);
  });
  CHECK(crane::test::until([pid] { return process_stat(pid).main_thread_ended(); }));
  CHECK(::waitpid(pid, nullptr, WNOHANG) == 0);
  ::kill(pid, SIGKILL);
  REQUIRE(::waitpid(pid, nullptr, 0) == pid);
}
