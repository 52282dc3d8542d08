// SPDX-License-Identifier: Apache-2.0
// GOAL    Stop and continue signals are operations of the schedule and are reported to the parent
//         once.
// METHOD  The test holds the turn of the main process and sends signals to children.
// CHECKS  JOB-2, which signals each signal cancels, orphaned groups.
#include "dmt/job_control.h"

#include <catch2/catch.hpp>
#include <csignal>

#include "dmt/processes.h"
#include "dmt/scheduler.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

struct Jobs : World {
  Jobs() { hold(); }
  std::uint16_t fork(std::uint16_t parent = kMainProcess) {
    const Child child = create_process(w, parent);
    REQUIRE(child.process != kNoProcess);
    w.processes[child.process].pid = 100u + child.process;
    return child.process;
  }
  WaitChoice wait_choice(unsigned events = kChildEnded | kChildStopped | kChildContinued) {
    return find_child(w, kMainProcess, -1, events);
  }
  bool is_pending(std::uint16_t process, int signo) const {
    return (w.processes[process].pending_signals >> (signo - 1) & 1) != 0;
  }
};

}  // namespace

TEST_CASE_METHOD(Jobs, "a stop and its end are reported once each, and only the later one",
                 "[jobs]") {
  const std::uint16_t child = fork();
  stop_process(w, child, SIGSTOP);
  CHECK(is_stopped(w, child));
  CHECK(is_pending(kMainProcess, SIGCHLD) == false);  // ignored by default
  CHECK(wait_choice(kChildEnded).child == kNoProcess);
  CHECK(wait_choice(kChildStopped).child == child);
  CHECK(wait_choice().status == ((SIGSTOP << 8) | 0x7f));
  take_stop_event(w, child);
  CHECK(wait_choice().child == kNoProcess);
  CHECK(wait_choice().exists);
  send_signal(w, child, SIGCONT);
  CHECK_FALSE(is_stopped(w, child));
  CHECK(wait_choice().status == 0xffff);
  stop_process(w, child, SIGTSTP);
  CHECK(wait_choice(kChildContinued).child == kNoProcess);  // JOB-2
  CHECK(wait_choice().status == ((SIGTSTP << 8) | 0x7f));
  send_signal(w, child, SIGCONT);
  send_signal(w, child, SIGCONT);
  CHECK(wait_choice(kChildStopped).child == kNoProcess);  // JOB-2
  end_process(w, child, 0x300);
  CHECK(wait_choice().status == 0x300);
}

TEST_CASE_METHOD(Jobs, "the parent's SIGCHLD follows its flags", "[jobs]") {
  w.processes[kMainProcess].dispositions[SIGCHLD] = Disposition::kHandler;
  const std::uint16_t child = fork();
  SignalInfo info{};
  stop_process(w, child, SIGSTOP);
  CHECK(take_signal(w, main, info) == SIGCHLD);
  CHECK(info.code == CLD_STOPPED);
  CHECK(info.status == SIGSTOP);
  send_signal(w, child, SIGCONT);
  CHECK(take_signal(w, main, info) == SIGCHLD);
  CHECK(info.code == CLD_CONTINUED);
  w.processes[kMainProcess].no_child_stop = true;
  stop_process(w, child, SIGSTOP);
  CHECK(take_signal(w, main, info) == 0);
  CHECK(wait_choice(kChildStopped).child == child);  // waitpid reports it anyway
  w.processes[kMainProcess].no_child_wait = true;
  end_process(w, child, 0);
  CHECK(take_signal(w, main, info) == SIGCHLD);
  CHECK_FALSE(wait_choice().exists);
}

TEST_CASE_METHOD(Jobs, "stop signals and SIGCONT cancel each other, SIGKILL continues", "[jobs]") {
  const std::uint16_t child = fork();
  ProcessRecord& p = w.processes[child];
  w.slots[p.main_slot].blocked_signals = ~0ull;
  send_signal(w, child, SIGTSTP);
  send_signal(w, child, SIGTTIN);
  CHECK(is_pending(child, SIGTSTP));
  send_signal(w, child, SIGCONT);
  CHECK_FALSE(is_pending(child, SIGTSTP));
  CHECK_FALSE(is_pending(child, SIGTTIN));
  CHECK(is_pending(child, SIGCONT));
  send_signal(w, child, SIGTTOU);
  CHECK_FALSE(is_pending(child, SIGCONT));
  send_signal_to_slot(w, Slot{p.main_slot}, SIGCONT);
  CHECK_FALSE(is_pending(child, SIGTTOU));
  stop_process(w, child, SIGSTOP);
  send_signal(w, child, SIGTERM);
  CHECK(is_stopped(w, child));
  send_signal(w, child, SIGKILL);
  CHECK_FALSE(is_stopped(w, child));
  CHECK(wait_choice(kChildContinued).child == kNoProcess);
}

TEST_CASE_METHOD(Jobs, "only SIGSTOP stops an orphaned group, and it gets SIGHUP", "[jobs]") {
  const std::uint16_t shell = fork();
  w.processes[shell].group = w.processes[shell].session = 102;
  stop_process(w, shell, SIGTSTP);
  CHECK_FALSE(is_stopped(w, shell));
  stop_process(w, shell, SIGSTOP);
  CHECK(is_stopped(w, shell));
  send_signal(w, shell, SIGCONT);
  const std::uint16_t job = fork(shell);
  w.processes[job].group = 103;
  stop_process(w, job, SIGTSTP);
  CHECK(is_stopped(w, job));
  end_process(w, shell, 0);
  CHECK_FALSE(is_stopped(w, job));
  CHECK(is_pending(job, SIGHUP));
}
