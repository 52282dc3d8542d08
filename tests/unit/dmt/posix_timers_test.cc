// SPDX-License-Identifier: Apache-2.0
// GOAL    Queued signals, POSIX timers and processor clocks are functions of the log.
// METHOD  The test holds the turn of the main process and admits time.
// CHECKS  Order and number of queued signals, a full table, overruns, one notification at a time.
//         Processor time counts for the thread with the turn, and for no thread while all wait.
#include "dmt/posix_timers.h"

#include <catch2/catch.hpp>
#include <csignal>

#include "dmt/processes.h"
#include "dmt/scheduler.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr int kRealTime = 40;
constexpr Operation kOp = 4;

struct Held : World {
  Held() {
    hold();
    for (const int signo : {SIGALRM, SIGPROF, SIGUSR1, kRealTime}) {
      w.processes[kMainProcess].dispositions[signo] = Disposition::kHandler;
    }
  }
  void pass_to(std::int64_t after_origin_ns) {
    time(after_origin_ns, kPlenty);
    admit();
  }
  std::uint32_t timer(TimerClock counts = TimerClock::kVirtual) {
    PosixTimer t{};
    t.notify = Notify::kSignal;
    t.counts = counts;
    t.process = kMainProcess;
    t.signo = SIGALRM;
    t.slot = kNone;
    t.clock_slot = value(main);
    return create_posix_timer(w, t);
  }
};

SignalInfo queued(std::uint64_t value) {
  SignalInfo info{};
  info.code = SI_QUEUE;
  info.value = value;
  return info;
}

}  // namespace

TEST_CASE("real-time signals queue in sending order, standard signals merge", "[signals]") {
  Held f;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    CHECK(send_signal(f.w, kMainProcess, kRealTime, queued(i)));
    CHECK(send_signal(f.w, kMainProcess, SIGUSR1, queued(10 + i)));
  }
  CHECK(send_signal_to_slot(f.w, f.main, kRealTime, queued(9)));
  SignalInfo info{};
  CHECK(take_signal(f.w, f.main, info) == kRealTime);  // the thread's own signals come first
  CHECK(info.value == 9);
  CHECK(take_signal(f.w, f.main, info) == SIGUSR1);
  CHECK(info.value == 11);
  for (const std::uint64_t wanted : {1u, 2u, 3u}) {
    CHECK(take_signal(f.w, f.main, info) == kRealTime);
    CHECK(info.value == wanted);
  }
  CHECK(take_signal(f.w, f.main, info) == 0);
}

TEST_CASE("a full table of queued signals refuses sigqueue, and works again after a release",
          "[signals]") {
  Held f;
  std::uint64_t sent = 0;
  while (send_signal(f.w, kMainProcess, kRealTime, queued(sent))) ++sent;
  CHECK(sent == kQueuedSignalsMax - 1);
  SignalInfo info{};
  CHECK(take_signal(f.w, f.main, info) == kRealTime);
  CHECK(info.value == 0);
  CHECK(send_signal(f.w, kMainProcess, kRealTime, queued(sent)));
  CHECK_FALSE(send_signal(f.w, kMainProcess, kRealTime, queued(sent)));
  discard_signal(f.w, kMainProcess, kRealTime);
  CHECK(f.w.processes[kMainProcess].pending_signals == 0);
  CHECK(f.w.signals.head == 0);
  CHECK(send_signal(f.w, kMainProcess, kRealTime, queued(1)));
}

TEST_CASE("the queued signals and timers of a process end with it", "[signals]") {
  Held f;
  const Child child = create_process(f.w, kMainProcess);
  f.w.processes[child.process].dispositions[kRealTime] = Disposition::kHandler;
  send_signal(f.w, child.process, kRealTime, queued(1));
  send_signal_to_slot(f.w, child.slot, kRealTime, queued(2));
  PosixTimer t{};
  t.process = child.process;
  const std::uint32_t timer = create_posix_timer(f.w, t);
  set_posix_timer(f.w, timer, kOrigin + 50, 0);
  end_process(f.w, child.process, 0);
  reap_process(f.w, child.process);
  CHECK(f.w.signals.head == 0);
  CHECK(find_posix_timer(f.w, child.process, timer) == nullptr);
  CHECK(f.w.scheduler.timers_armed == 0);
}

TEST_CASE("a timer: expirations while its signal is pending count as overruns", "[timers]") {
  Held f;
  const std::uint32_t timer = f.timer();
  set_posix_timer(f.w, timer, kOrigin + 100, 10);
  f.pass_to(99);
  CHECK(f.w.processes[kMainProcess].pending_signals == 0);
  f.pass_to(135);  // 100, 110, 120, 130
  SignalInfo info{};
  CHECK(take_signal(f.w, f.main, info) == SIGALRM);
  CHECK(info.code == SI_TIMER);
  CHECK(info.timer == timer);
  CHECK(info.status == 3);
  CHECK(f.w.posix_timers[timer].last_overrun == 3);
  CHECK(time_left(f.w, f.w.posix_timers[timer]) == 5);
  CHECK(take_signal(f.w, f.main, info) == 0);
  f.pass_to(140);
  CHECK(take_signal(f.w, f.main, info) == SIGALRM);
  CHECK(info.status == 0);
  delete_posix_timer(f.w, timer);
  f.pass_to(1000);
  CHECK(take_signal(f.w, f.main, info) == 0);
}

TEST_CASE("a timer's real-time signal is queued once, beside others", "[timers]") {
  Held f;
  const std::uint32_t t = f.timer();
  f.w.posix_timers[t].signo = kRealTime;
  CHECK(send_signal(f.w, kMainProcess, kRealTime, queued(7)));
  set_posix_timer(f.w, t, kOrigin + 10, 10);
  for (std::int64_t at = 15; at <= 45; at += 10) f.pass_to(at);
  SignalInfo info{};
  CHECK(take_signal(f.w, f.main, info) == kRealTime);
  CHECK(info.value == 7);
  CHECK(take_signal(f.w, f.main, info) == kRealTime);
  CHECK(info.code == SI_TIMER);
  CHECK(info.status == 3);
  CHECK(take_signal(f.w, f.main, info) == 0);
}

TEST_CASE("a timer continues after its signal found the table full", "[timers]") {
  Held f;
  while (send_signal(f.w, kMainProcess, kRealTime, queued(1))) {
  }
  const std::uint32_t t = f.timer();
  set_posix_timer(f.w, t, kOrigin + 10, 10);
  f.pass_to(15);
  SignalInfo info{};
  CHECK(take_signal(f.w, f.main, info) == SIGALRM);
  CHECK(info.code == 0);  // without a record
  while (take_signal(f.w, f.main, info) != 0) {
  }
  f.pass_to(25);
  CHECK(take_signal(f.w, f.main, info) == SIGALRM);
  CHECK(info.code == SI_TIMER);
}

TEST_CASE("a timer with SIGEV_THREAD is announced once at a time", "[timers]") {
  Held f;
  const std::uint32_t timer = f.timer();
  f.w.posix_timers[timer].notify = Notify::kThread;
  set_posix_timer(f.w, timer, kOrigin + 100, 100);
  CHECK(take_thread_notification(f.w, kMainProcess) == kNoPosixTimer);
  f.pass_to(100);
  f.pass_to(200);
  CHECK(take_thread_notification(f.w, kMainProcess) == timer);
  CHECK(f.w.posix_timers[timer].last_overrun == 1);
  CHECK(take_thread_notification(f.w, kMainProcess) == kNoPosixTimer);
}

TEST_CASE("processor time counts for the thread with the turn, and timers on it expire",
          "[timers]") {
  Held f;
  put_turn(f.w, f.main, kOp, 0, false);
  get_turn(f.w, f.main);
  const std::uint32_t timer = f.timer(TimerClock::kProcess);
  set_posix_timer(f.w, timer, 500, 0);
  f.w.processes[kMainProcess].cpu_due_ns[1] = 300;
  f.w.processes[kMainProcess].cpu_interval_ns[1] = 300;
  f.pass_to(299);
  CHECK(f.w.processes[kMainProcess].cpu_ns == 299);
  CHECK(f.w.slots[value(f.main)].cpu_ns == 299);
  CHECK(take_signal(f.w, f.main) == 0);
  f.pass_to(400);
  CHECK(take_signal(f.w, f.main) == SIGPROF);
  CHECK(f.w.processes[kMainProcess].cpu_due_ns[1] == 600);
  CHECK(take_signal(f.w, f.main) == 0);
  f.pass_to(500);
  CHECK(take_signal(f.w, f.main) == SIGALRM);
}

TEST_CASE("time that passes while all threads wait counts for no process", "[timers]") {
  World world;
  std::int64_t used = -1;
  world.start(kPlenty);
  world.spawn([&](Slot me) {
    Layout& w = world.w;
    get_turn(w, me);
    wait(w, me, 0, kOrigin + 1'000'000, kOp);
    used = w.processes[kMainProcess].cpu_ns;
    release_slot(w, me);
    leave(w, me);
  });
  world.run_as(world.main, [&](Slot me) {
    get_turn(world.w, me);
    release_slot(world.w, me);
    leave(world.w, me);
  });
  world.drive();
  CHECK(used == 0);
}
