// SPDX-License-Identifier: Apache-2.0
// GOAL    A server that can never continue is distinguished from one that waits for its clients.
// METHOD  Real threads as slots that wait in each of the ways. The test is the node and inspects
//         them when the turn is unowned.
// CHECKS  STUCK-1; the description of each thread.
#include "dmt/stuck.h"

#include <catch2/catch.hpp>
#include <string>

#include "dmt/files.h"
#include "dmt/processes.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr Operation kOp = 1;
constexpr std::uint64_t kObject = 77;
constexpr std::int64_t kLate = kOrigin + 1'000'000'000;

// The main thread waits for `object` until it is signalled; other threads do the same.
struct Server : World {
  explicit Server(std::uint64_t object = kObject, std::int64_t deadline = kNoDeadline) {
    std::memcpy(w.operation_names, "first\0lock\0sigwait\0", 19);
    w.processes[kMainProcess].pid = 40;
    w.slots[value(main)].thread_id = 40;
    run_as(main, [=, this](Slot me) { wait_and_end(me, object, deadline, kOp); });
  }
  void wait_and_end(Slot me, std::uint64_t object, std::int64_t deadline, Operation op) {
    get_turn(w, me);
    note_caller(w, 0x5555);
    wait(w, me, object, deadline, op);
    finish(w, me);
  }
  // Waits until all threads wait.
  void settle() {
    start(kPlenty);
    admit_from_node(w);
    until("all threads wait", [&] {
      return w.scheduler.holder.load() == kHolderIdle && w.scheduler.run_queue.head == kNone;
    });
  }
  void end() {
    until("the turn is unowned", [&] {
      std::uint32_t idle = kHolderIdle;
      return w.scheduler.holder.compare_exchange_strong(idle, value(kNodeSlot));
    });
    for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
      wake(w, Slot{i}, WakeReason::kSignalled);
    }
    bubble(kPlenty);
    w.scheduler.holder.store(kHolderIdle);
    drive();
  }
};

}  // namespace

TEST_CASE("threads that wait for each other are stuck, and the description contains their objects",
          "[stuck]") {
  Server s;
  const Slot other = s.spawn([&](Slot me) { s.wait_and_end(me, kObject, kNoDeadline, kOp); });
  s.settle();
  CHECK(is_stuck(s.w));
  CHECK(next_waiting(s.w, 0) == value(s.main));
  CHECK(next_waiting(s.w, value(s.main)) == value(other));
  CHECK(next_waiting(s.w, value(other)) == 0);
  s.w.slots[value(other)].thread_id = 41;
  char text[300];
  describe_wait(s.w, value(s.main), text);
  CHECK(std::string(text) ==
        "thread 40 of process 40 waits in lock, called at 0x5555, for 0 ms of virtual time; the "
        "last other thread there: thread 41 of process 40 in lock");
  char little[12];
  describe_wait(s.w, value(s.main), little);
  CHECK(std::string(little) == "thread 40 o");
  s.end();
}

TEST_CASE("a thread with a deadline is not stuck, and neither are threads that wait for it",
          "[stuck]") {
  Server s;
  s.spawn([&](Slot me) { s.wait_and_end(me, 0, kLate, kOp); });
  s.settle();
  CHECK_FALSE(is_stuck(s.w));
  s.end();
}

TEST_CASE("a thread that waits for a signal is not stuck", "[stuck]") {
  const bool by_name = GENERATE(true, false);
  Server s(by_name ? kObject : signal_object(kMainProcess));
  if (by_name) s.spawn([&](Slot me) { s.wait_and_end(me, 0, kNoDeadline, 2); });
  s.settle();
  CHECK_FALSE(is_stuck(s.w));
  s.end();
}

TEST_CASE("a thread that watches files is stuck if none gets input from outside", "[stuck]") {
  Server s(0);
  s.settle();
  CHECK(is_stuck(s.w));
  FileRecord& f = s.w.files[1];
  s.w.scheduler.files_used = 1;
  f.kind = GENERATE(FileKind::kListener, FileKind::kDatagram, FileKind::kSignalFd);
  CHECK_FALSE(is_stuck(s.w));
  f.kind = FileKind::kPipeRead;
  CHECK(is_stuck(s.w));
  f.kind = FileKind::kFree;
  s.w.scheduler.files_used = 0;
  s.end();
}

TEST_CASE("a thread that waits for a client's bytes is not stuck, for a thread's bytes it is",
          "[stuck]") {
  Server s(kObject);
  s.settle();
  FileRecord& f = s.w.files[1];
  s.w.scheduler.files_used = 1;
  f.object = kObject;
  f.kind = FileKind::kConnection;
  CHECK_FALSE(is_stuck(s.w));
  f.connection.loopback = true;
  CHECK(is_stuck(s.w));
  char text[300];
  describe_wait(s.w, value(s.main), text);
  CHECK(std::string(text).find("a connection between the server's own sockets") !=
        std::string::npos);
  f.connection.loopback = false;
  f.kind = FileKind::kFree;
  s.w.scheduler.files_used = 0;
  s.end();
}
