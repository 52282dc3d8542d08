// SPDX-License-Identifier: Apache-2.0
// GOAL    Processes and signals are operations of the schedule.
// METHOD  The test holds the turn of the main process.
// CHECKS  DMT-P1, DMT-P2, creation, end, zombies, orphans, waitpid's choice, delivery, alarms.
#include "dmt/processes.h"

#include <catch2/catch.hpp>
#include <csignal>

#include "dmt/files.h"
#include "dmt/scheduler.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr Operation kOp = 4;

struct Family : World {
  Family() { hold(); }
  Child fork(std::uint16_t parent = kMainProcess) {
    const Child child = create_process(w, parent);
    REQUIRE(child.process != kNoProcess);
    w.processes[child.process].pid = 100u + child.process;
    return child;
  }
  ProcessRecord& at(std::uint16_t process) { return w.processes[process]; }
};

}  // namespace

TEST_CASE("a process is created, ends and is waited for, then its record is free", "[processes]") {
  Family f;
  const Child child = f.fork();
  CHECK(child.process == 2);
  CHECK(f.at(2).slots == 1);
  CHECK(f.at(2).parent == kMainProcess);
  CHECK(f.at(2).space != f.at(1).space);
  CHECK(f.w.slots[value(child.slot)].state == SlotState::kRunnable);
  CHECK(find_child(f.w, kMainProcess, -1, kChildEnded).exists);
  CHECK(find_child(f.w, kMainProcess, -1, kChildEnded).child == kNoProcess);
  CHECK(find_process(f.w, 102) == 2);
  end_process(f.w, 2, 0x700);
  CHECK(f.at(2).state == ProcessState::kZombie);
  CHECK(f.at(2).gone.load() == 1);  // DMT-P2
  CHECK(f.w.slots[value(child.slot)].state == SlotState::kDead);
  CHECK(f.w.scheduler.runnable == 1);
  const WaitChoice choice = find_child(f.w, kMainProcess, 102, kChildEnded);
  CHECK(choice.child == 2);
  CHECK(f.at(2).wait_status == 0x700);
  reap_process(f.w, 2);
  CHECK(f.w.slots[value(child.slot)].state == SlotState::kFree);
  CHECK_FALSE(find_child(f.w, kMainProcess, -1, kChildEnded).exists);
  CHECK(f.fork().process == 2);
}

TEST_CASE("a fork that fails leaves nothing", "[processes]") {
  Family f;
  const std::uint32_t file = create_file(f.w, f.main, FileKind::kEventFd);
  bind_descriptor(f.w, kMainProcess, 4, file);
  const Child child = create_process(f.w, kMainProcess);
  CHECK(f.w.files[file].references == 2);
  abandon_process(f.w, child.process);
  CHECK(f.w.files[file].references == 1);
  CHECK(f.w.scheduler.runnable == 1);
  CHECK(f.at(child.process).state == ProcessState::kFree);
}

TEST_CASE("a full table of processes returns an error", "[processes]") {
  Family f;
  for (std::uint32_t i = 2; i < kProcessesMax; ++i) f.fork();
  CHECK(create_process(f.w, kMainProcess).process == kNoProcess);
}

TEST_CASE("waitpid chooses by pid and group; the lowest zombie wins", "[processes]") {
  Family f;
  for (int i = 0; i < 4; ++i) f.fork();  // 2 3 4 5
  f.at(4).group = 900;
  f.at(5).group = 900;
  for (std::uint16_t p = 5; p >= 3; --p) end_process(f.w, p, 0);
  CHECK(find_child(f.w, kMainProcess, -1, kChildEnded).child == 3);
  CHECK(find_child(f.w, kMainProcess, 105, kChildEnded).child == 5);
  CHECK(find_child(f.w, kMainProcess, -900, kChildEnded).child == 4);
  CHECK(find_child(f.w, kMainProcess, 0, kChildEnded).child == 3);
  CHECK(find_child(f.w, kMainProcess, 102, kChildEnded).exists);
  CHECK(find_child(f.w, kMainProcess, 102, kChildEnded).child == kNoProcess);
  CHECK_FALSE(find_child(f.w, kMainProcess, 999, kChildEnded).exists);
  CHECK_FALSE(find_child(f.w, 2, -1, kChildEnded).exists);
}

TEST_CASE("orphans go to init, and no process is notified of their end", "[processes]") {
  Family f;
  f.at(kMainProcess).dispositions[SIGCHLD] = Disposition::kHandler;
  f.fork();   // 2
  f.fork(2);  // 3
  f.fork(2);  // 4
  end_process(f.w, 4, 0);
  end_process(f.w, 2, 0);
  CHECK(f.at(3).parent == kNoProcess);
  CHECK(f.at(4).state == ProcessState::kFree);
  CHECK(take_signal(f.w, f.main) == SIGCHLD);  // only for 2
  CHECK(take_signal(f.w, f.main) == 0);
  CHECK(find_child(f.w, kMainProcess, -1, kChildEnded).child == 2);
  reap_process(f.w, 2);
  CHECK_FALSE(find_child(f.w, kMainProcess, -1, kChildEnded).exists);
  end_process(f.w, 3, 0);
  CHECK(f.at(3).state == ProcessState::kFree);
  CHECK(take_signal(f.w, f.main) == 0);
}

TEST_CASE("orphans become children of the subreaper, which is notified of the dead ones",
          "[processes]") {
  Family f;
  f.at(kMainProcess).collects_orphans = true;
  f.at(kMainProcess).dispositions[SIGCHLD] = Disposition::kHandler;
  f.fork();   // 2
  f.fork(2);  // 3
  f.fork(2);  // 4
  end_process(f.w, 4, 0);
  CHECK(take_signal(f.w, f.main) == 0);  // it was 2's child
  end_process(f.w, 2, 0);
  CHECK(f.at(3).parent == kMainProcess);
  CHECK(f.at(4).parent == kMainProcess);
  CHECK(take_signal(f.w, f.main) == SIGCHLD);
  CHECK(find_child(f.w, kMainProcess, 104, kChildEnded).child == 4);
}

TEST_CASE("the waiter for any child is also woken by an orphan's end", "[processes]") {
  World world;
  bool woken = false;
  world.run_as(world.main, [&](Slot me) {
    Layout& w = world.w;
    get_turn(w, me);
    const Child middle = create_process(w, kMainProcess);
    const Child orphan = create_process(w, middle.process);
    w.processes[middle.process].dispositions[SIGCHLD] = Disposition::kHandler;
    w.processes[kMainProcess].dispositions[SIGCHLD] = Disposition::kIgnore;
    w.processes[kMainProcess].collects_orphans = true;
    end_process(w, orphan.process, 0);
    world.run_as(middle.slot, [&, middle](Slot other) {
      get_turn(w, other);
      end_process(w, middle.process, 0);
      leave(w, other);
    });
    woken = wait(w, me, child_object(kMainProcess), kNoDeadline, kOp) == WakeReason::kSignalled;
    // SIGCHLD is ignored: neither leaves a zombie.
    CHECK(w.processes[middle.process].state == ProcessState::kFree);
    CHECK(w.processes[orphan.process].state == ProcessState::kFree);
    release_slot(w, me);
    leave(w, me);
  });
  world.start(kPlenty);
  world.drive();
  CHECK(woken);
}

TEST_CASE("the end of the main process ends the replica and is reported to the node",
          "[processes]") {
  Family f;
  f.outputs();
  end_process(f.w, kMainProcess, 0x300);
  CHECK(f.w.scheduler.ended);
  const auto out = f.outputs();
  REQUIRE(out.size() == 1);
  CHECK(out[0].header.type == OutputType::kExit);
  CHECK(out[0].header.argument == 0x300);
}

TEST_CASE("slots of an ended process are released only when it is reaped", "[processes]") {
  Family f;
  const Child child = f.fork();
  const Slot second = create_slot(f.w, child.process);
  CHECK(f.at(child.process).slots == 2);
  end_process(f.w, child.process, 0);
  CHECK(f.w.slots[value(second)].state == SlotState::kDead);
  reap_process(f.w, child.process);
  CHECK(f.w.slots[value(second)].state == SlotState::kFree);
}

// --- signals -------------------------------------------------------------------------------------

TEST_CASE("signals: pending until taken, lowest first; blocked signals wait", "[signals]") {
  Family f;
  ProcessRecord& p = f.at(kMainProcess);
  for (const int signo : {SIGHUP, SIGUSR1, SIGTERM}) p.dispositions[signo] = Disposition::kHandler;
  SlotRecord& slot = f.w.slots[value(f.main)];
  slot.blocked_signals = 1ull << (SIGHUP - 1);
  send_signal(f.w, kMainProcess, SIGTERM);
  send_signal(f.w, kMainProcess, SIGHUP);
  send_signal_to_slot(f.w, f.main, SIGUSR1);
  send_signal(f.w, kMainProcess, SIGTERM);  // pending already: counts once
  CHECK(signal_deliverable(f.w, f.main));
  CHECK(take_signal(f.w, f.main) == SIGUSR1);
  CHECK(take_signal(f.w, f.main) == SIGTERM);
  CHECK(take_signal(f.w, f.main) == 0);
  CHECK_FALSE(signal_deliverable(f.w, f.main));
  slot.blocked_signals = 0;
  CHECK(take_signal(f.w, f.main) == SIGHUP);
}

TEST_CASE("signals: ignored ones are dropped, unless they are blocked", "[signals]") {
  Family f;
  send_signal(f.w, kMainProcess, SIGCHLD);  // ignored by default
  f.at(kMainProcess).dispositions[SIGPIPE] = Disposition::kIgnore;
  send_signal(f.w, kMainProcess, SIGPIPE);
  CHECK(f.at(kMainProcess).pending_signals == 0);
  // As in programs that read SIGCHLD from a signalfd or with sigwait.
  f.w.slots[value(f.main)].blocked_signals = 1ull << (SIGCHLD - 1);
  send_signal(f.w, kMainProcess, SIGCHLD);
  CHECK(f.at(kMainProcess).pending_signals == 1ull << (SIGCHLD - 1));
}

TEST_CASE("signals: an operator's signal reaches the main process through the log", "[signals]") {
  Family f;
  f.at(kMainProcess).dispositions[SIGHUP] = Disposition::kHandler;
  f.signal_entry(SIGHUP);
  f.admit();
  CHECK(take_signal(f.w, f.main) == SIGHUP);
}

TEST_CASE("signals: a waiting thread that does not block the signal is interrupted", "[signals]") {
  World world;
  std::vector<int> interrupted;
  world.w.processes[kMainProcess].dispositions[SIGUSR1] = Disposition::kHandler;
  for (int t = 0; t < 3; ++t) {
    world.spawn([&, t](Slot me) {
      Layout& w = world.w;
      get_turn(w, me);
      if (t == 0) w.slots[value(me)].blocked_signals = 1ull << (SIGUSR1 - 1);
      if (wait(w, me, 50, kOrigin + 1000, kOp) == WakeReason::kInterrupted) {
        interrupted.push_back(t);
        CHECK(take_signal(w, me) == SIGUSR1);
      }
      release_slot(w, me);
      leave(w, me);
    });
  }
  world.run_as(world.main, [&](Slot me) {
    get_turn(world.w, me);
    world.w.slots[value(me)].blocked_signals = ~0ull;
    put_turn(world.w, me, kOp, 0, true);
    get_turn(world.w, me);
    send_signal(world.w, kMainProcess, SIGUSR1);
    release_slot(world.w, me);
    leave(world.w, me);
  });
  world.start(kPlenty);
  world.drive();
  CHECK(interrupted == std::vector<int>{1});
}

TEST_CASE("signals: a signalfd becomes readable for its signals only", "[signals]") {
  Family f;
  f.w.slots[value(f.main)].blocked_signals = ~0ull;
  const std::uint32_t file = create_file(f.w, f.main, FileKind::kSignalFd);
  f.w.files[file].port = kMainProcess;
  f.w.files[file].counter.signal_mask = 1ull << (SIGCHLD - 1);
  send_signal(f.w, kMainProcess, SIGUSR2);
  CHECK(f.w.files[file].readiness == 0);
  send_signal(f.w, kMainProcess, SIGCHLD);
  CHECK(f.w.files[file].readiness == kIn);
  f.w.slots[value(f.main)].blocked_signals = ~(1ull << (SIGCHLD - 1));
  CHECK(take_signal(f.w, f.main) == SIGCHLD);
  CHECK(f.w.files[file].readiness == 0);
  drop_reference(f.w, file);
  CHECK(f.w.scheduler.signal_files == 0);
}

TEST_CASE("alarms: once or periodically", "[signals][time]") {
  Family f;
  ProcessRecord& p = f.at(kMainProcess);
  p.dispositions[SIGALRM] = Disposition::kHandler;
  p.alarm_timer = create_timer(f.w, TimerKind::kProcess, kMainProcess);
  p.alarm_interval_ns = 100;
  arm_timer(f.w, p.alarm_timer, kOrigin + 100);
  f.time(100, kPlenty);
  f.admit();
  CHECK(take_signal(f.w, f.main) == SIGALRM);
  p.alarm_interval_ns = 0;
  f.time(200, kPlenty);
  f.admit();
  CHECK(take_signal(f.w, f.main) == SIGALRM);
  CHECK(f.w.scheduler.timers_armed == 0);
}
