// SPDX-License-Identifier: Apache-2.0
// GOAL    Readiness depends only on the shared tables, and its order is the same on all replicas.
// METHOD  The test holds the turn; threads are used only where one must wait.
// CHECKS  references (DMT-F1, DMT-F2), watches (DMT-F3), epoll's modes and orders, pipes, streams,
//         counters.
#include "dmt/files.h"

#include <sys/epoll.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <random>

#include "dmt/connections.h"
#include "dmt/processes.h"
#include "dmt/scheduler.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr Operation kOp = 3;

struct Files : World {
  explicit Files(const Options& options = {}) : World(options) { hold(); }

  std::uint32_t create(FileKind kind) {
    const std::uint32_t file = create_file(w, main, kind);
    REQUIRE(file != 0);
    return file;
  }
  std::uint32_t add(std::uint32_t epoll, int fd, std::uint32_t file, std::uint32_t events) {
    const std::uint32_t watch = epoll_add(w, epoll, fd, file, events, static_cast<unsigned>(fd));
    REQUIRE(watch != 0);
    return watch;
  }
  // The user data of the events that epoll_wait returns.
  std::vector<std::uint64_t> collect(std::uint32_t epoll, std::uint32_t capacity = 16) {
    EpollReady ready[16];
    const std::uint32_t n = epoll_collect(w, epoll, ready, capacity);
    std::vector<std::uint64_t> result;
    for (std::uint32_t i = 0; i < n; ++i) result.push_back(ready[i].data);
    return result;
  }
  // write() and read() of an eventfd.
  void post(std::uint32_t event_fd, std::uint64_t add_count = 1) {
    w.files[event_fd].counter.count += add_count;
    refresh_readiness(w, event_fd, true);
  }
  void drain(std::uint32_t event_fd) {
    w.files[event_fd].counter.count = 0;
    refresh_readiness(w, event_fd, false);
  }
  std::pair<std::uint32_t, std::uint32_t> make_pipe(std::uint64_t capacity) {
    const std::uint32_t r = create(FileKind::kPipeRead);
    const std::uint32_t wr = create(FileKind::kPipeWrite);
    for (const auto& [file, peer] : {std::pair{r, wr}, std::pair{wr, r}}) {
      w.files[file].stream.peer = peer;
      w.files[file].stream.capacity = capacity;
      refresh_readiness(w, file, false);
    }
    return {r, wr};
  }
};

using Data = std::vector<std::uint64_t>;

}  // namespace

// --- references ----------------------------------------------------------------------------------

TEST_CASE("a file lives as long as a descriptor refers to it", "[files]") {
  Files s;
  const std::uint32_t file = s.create(FileKind::kEventFd);
  bind_descriptor(s.w, kMainProcess, 5, file);
  CHECK(file_of(s.w, kMainProcess, 5) == file);
  CHECK(file_of(s.w, kMainProcess, 6) == 0);
  CHECK(file_of(s.w, kMainProcess, -1) == 0);
  CHECK(file_of(s.w, kMainProcess, kFdsMax) == 0);
  add_reference(s.w, file);
  bind_descriptor(s.w, kMainProcess, 9, file);  // dup
  CHECK(s.w.files[file].references == 2);
  unbind_descriptor(s.w, kMainProcess, 5);
  CHECK(s.w.files[file].kind == FileKind::kEventFd);
  const std::uint32_t other = s.create(FileKind::kEventFd);
  bind_descriptor(s.w, kMainProcess, 9, other);  // dup2 over it
  CHECK(s.w.files[file].kind == FileKind::kFree);
  unbind_descriptor(s.w, kMainProcess, 5);      // no file of the tables: no effect
  CHECK(s.create(FileKind::kEventFd) == file);  // the last freed record is reused first
}

TEST_CASE("fork copies the descriptors, and exit drops them", "[files]") {
  Files s;
  const std::uint32_t file = s.create(FileKind::kEventFd);
  bind_descriptor(s.w, kMainProcess, 3, file);
  const Child child = create_process(s.w, kMainProcess);
  CHECK(file_of(s.w, child.process, 3) == file);
  CHECK(s.w.files[file].references == 2);
  end_process(s.w, child.process, 0);
  CHECK(s.w.files[file].references == 1);
  CHECK(file_of(s.w, child.process, 3) == 0);
}

TEST_CASE("a full table returns an error and does not crash", "[files]") {
  Files s;
  std::uint32_t last = 0;
  for (std::uint32_t i = 1; i < kFilesMax; ++i) last = s.create(FileKind::kEventFd);
  CHECK(create_file(s.w, s.main, FileKind::kEventFd) == 0);
  drop_reference(s.w, last);
  CHECK(create_file(s.w, s.main, FileKind::kEventFd) == last);
}

TEST_CASE("when no timer is free, creating a timerfd fails and leaves no file behind",
          "[files][time]") {
  Files s;
  std::vector<std::uint32_t> files;
  for (std::uint32_t i = kFirstSharedTimer; i < kTimersMax; ++i) {
    files.push_back(s.create(FileKind::kTimerFd));
  }
  const std::uint32_t used = s.w.scheduler.files_used;
  CHECK(create_file(s.w, s.main, FileKind::kTimerFd) == 0);
  CHECK(s.w.scheduler.files_used == used);
  for (const std::uint32_t file : files) drop_reference(s.w, file);
  CHECK(create_file(s.w, s.main, FileKind::kTimerFd) != 0);
}

TEST_CASE("objects of files are numbered in the order of creation", "[files]") {
  Files s;
  const std::uint32_t a = s.create(FileKind::kEventFd);
  const std::uint64_t name = s.w.files[a].object;
  drop_reference(s.w, a);
  const std::uint32_t b = s.create(FileKind::kEventFd);
  CHECK(a == b);
  CHECK(s.w.files[b].object != name);
}

// --- epoll ---------------------------------------------------------------------------------------

TEST_CASE("epoll: level-triggered items stay until they are drained", "[epoll]") {
  Files s;
  const std::uint32_t epoll = s.create(FileKind::kEpoll);
  const std::uint32_t a = s.create(FileKind::kEventFd);
  s.add(epoll, 10, a, EPOLLIN);
  CHECK(s.collect(epoll).empty());
  s.post(a);
  CHECK(s.w.files[epoll].readiness == kIn);
  CHECK(s.collect(epoll) == Data{10});
  CHECK(s.collect(epoll) == Data{10});
  s.drain(a);
  CHECK(s.collect(epoll).empty());
  CHECK(s.w.files[epoll].readiness == 0);
  s.post(a);
  CHECK(s.collect(epoll) == Data{10});
}

TEST_CASE("epoll: an item that is ready when it is added is reported", "[epoll]") {
  Files s;
  const std::uint32_t epoll = s.create(FileKind::kEpoll);
  const std::uint32_t a = s.create(FileKind::kEventFd);
  s.post(a);
  const std::uint32_t watch = s.add(epoll, 10, a, EPOLLOUT | EPOLLET);
  CHECK(s.collect(epoll) == Data{10});
  CHECK(s.collect(epoll).empty());
  epoll_modify(s.w, watch, EPOLLIN | EPOLLET, 77);
  CHECK(s.collect(epoll) == Data{77});
  CHECK(epoll_find(s.w, epoll, 10, a) == watch);
  CHECK(epoll_find(s.w, epoll, 11, a) == 0);
  epoll_modify(s.w, watch, EPOLLPRI, 77);
  CHECK(s.collect(epoll).empty());
}

TEST_CASE("epoll: edge-triggered items are reported once per edge", "[epoll]") {
  Files s;
  const std::uint32_t epoll = s.create(FileKind::kEpoll);
  const std::uint32_t a = s.create(FileKind::kEventFd);
  s.add(epoll, 10, a, EPOLLIN | EPOLLET);
  s.post(a);
  CHECK(s.collect(epoll) == Data{10});
  CHECK(s.collect(epoll).empty());
  s.post(a);  // more input is an edge even if the file was readable before
  s.post(a);
  CHECK(s.collect(epoll) == Data{10});
  CHECK(s.collect(epoll).empty());
}

TEST_CASE("epoll: a oneshot item is silent until it is rearmed", "[epoll]") {
  Files s;
  const std::uint32_t epoll = s.create(FileKind::kEpoll);
  const std::uint32_t a = s.create(FileKind::kEventFd);
  const std::uint32_t watch = s.add(epoll, 10, a, EPOLLIN | EPOLLONESHOT);
  s.post(a);
  CHECK(s.collect(epoll) == Data{10});
  s.post(a);
  CHECK(s.collect(epoll).empty());
  CHECK(s.w.files[epoll].readiness == 0);
  epoll_modify(s.w, watch, EPOLLIN | EPOLLONESHOT, 10);
  CHECK(s.collect(epoll) == Data{10});
}

TEST_CASE("epoll: items are reported in the order in which they became ready, and rotate",
          "[epoll]") {
  Files s;
  const std::uint32_t epoll = s.create(FileKind::kEpoll);
  std::vector<std::uint32_t> files;
  for (int fd = 10; fd < 14; ++fd) {
    files.push_back(s.create(FileKind::kEventFd));
    s.add(epoll, fd, files.back(), EPOLLIN);
  }
  s.post(files[2]);
  s.post(files[0]);
  s.post(files[3]);
  CHECK(s.collect(epoll, 2) == Data{12, 10});
  s.post(files[1]);
  // 12 and 10 were reported: they follow 13, which was not, and precede 11, which is new.
  CHECK(s.collect(epoll, 3) == Data{13, 12, 10});
  CHECK(s.collect(epoll) == Data{11, 13, 12, 10});
  CHECK(s.collect(epoll) == Data{11, 13, 12, 10});
}

TEST_CASE("epoll: one file under two descriptor numbers is two items", "[epoll]") {
  Files s;
  const std::uint32_t epoll = s.create(FileKind::kEpoll);
  const std::uint32_t a = s.create(FileKind::kEventFd);
  add_reference(s.w, a);
  const std::uint32_t first = s.add(epoll, 10, a, EPOLLIN);
  s.add(epoll, 11, a, EPOLLIN);
  s.post(a);
  CHECK(s.collect(epoll) == Data{10, 11});
  epoll_remove(s.w, first);
  CHECK(s.collect(epoll) == Data{11});
}

TEST_CASE("epoll: a nested epoll becomes ready with its contents", "[epoll]") {
  Files s;
  const std::uint32_t inner = s.create(FileKind::kEpoll);
  const std::uint32_t outer = s.create(FileKind::kEpoll);
  const std::uint32_t a = s.create(FileKind::kEventFd);
  s.add(outer, 20, inner, EPOLLIN);
  s.add(inner, 10, a, EPOLLIN);
  CHECK(s.collect(outer).empty());
  s.post(a);
  CHECK(s.collect(outer) == Data{20});
  CHECK(s.collect(inner) == Data{10});
  s.drain(a);
  CHECK(s.collect(inner).empty());
  CHECK(s.collect(outer).empty());
  s.post(a);
  drop_reference(s.w, a);  // the last descriptor of the file is closed
  CHECK(s.w.files[inner].readiness == 0);
  CHECK(s.collect(outer).empty());
}

TEST_CASE("epoll: an item ends with its file, not with a descriptor", "[epoll]") {
  Files s;
  const std::uint32_t epoll = s.create(FileKind::kEpoll);
  const std::uint32_t a = s.create(FileKind::kEventFd);
  bind_descriptor(s.w, kMainProcess, 10, a);
  add_reference(s.w, a);
  bind_descriptor(s.w, kMainProcess, 11, a);
  s.add(epoll, 10, a, EPOLLIN);
  s.post(a);
  unbind_descriptor(s.w, kMainProcess, 10);
  CHECK(s.collect(epoll) == Data{10});
  unbind_descriptor(s.w, kMainProcess, 11);
  CHECK(s.collect(epoll).empty());
  CHECK(s.w.files[epoll].epoll.items == 0);
}

TEST_CASE("epoll: closing an epoll frees its items, not the files", "[epoll]") {
  Files s;
  const std::uint32_t epoll = s.create(FileKind::kEpoll);
  const std::uint32_t a = s.create(FileKind::kEventFd);
  const std::uint32_t b = s.create(FileKind::kEventFd);
  s.add(epoll, 10, a, EPOLLIN);
  s.add(epoll, 11, b, EPOLLIN);
  s.post(a);
  drop_reference(s.w, epoll);
  CHECK(s.w.files[a].watches == 0);
  CHECK(s.w.files[b].watches == 0);
  s.post(a);
  s.post(b);
}

TEST_CASE("epoll: an error is reported even if it was not requested", "[epoll]") {
  Files s;
  const auto [r, wr] = s.make_pipe(10);
  const std::uint32_t epoll = s.create(FileKind::kEpoll);
  s.add(epoll, 10, wr, 0);
  CHECK(s.collect(epoll).empty());
  drop_reference(s.w, r);
  EpollReady ready{};
  REQUIRE(epoll_collect(s.w, epoll, &ready, 1) == 1);
  CHECK(ready.events == EPOLLERR);
}

TEST_CASE("epoll: an exclusive event goes to the first epoll with a waiter", "[epoll]") {
  // Each of three workers waits on its own epoll over one listener.
  World world;
  std::uint32_t epolls[3] = {};
  std::uint32_t listener = 0;
  std::vector<int> woken;
  for (int t = 0; t < 3; ++t) {
    world.spawn([&, t](Slot me) {
      Layout& w = world.w;
      get_turn(w, me);
      EpollReady ready{};
      while (epoll_collect(w, epolls[t], &ready, 1) == 0) {
        if (wait(w, me, w.files[epolls[t]].object, kOrigin + 1000, kOp) == WakeReason::kTimeout) {
          break;
        }
        woken.push_back(t);
      }
      release_slot(w, me);
      leave(w, me);
    });
  }
  world.run_as(world.main, [&](Slot me) {
    Layout& w = world.w;
    get_turn(w, me);
    listener = create_file(w, me, FileKind::kSocket);
    w.files[listener].listener.bound.port = 80;
    start_listening(w, listener, 5);
    for (std::uint32_t& epoll : epolls) {
      epoll = create_file(w, me, FileKind::kEpoll);
      epoll_add(w, epoll, 5, listener, EPOLLIN | EPOLLEXCLUSIVE, 1);
    }
    put_turn(w, me, kOp, 0, true);
    get_turn(w, me);
    release_slot(w, me);
    leave(w, me);
  });
  world.start(kPlenty);
  world.connect(80);
  world.time(2000, kPlenty);
  world.drive();
  // All wait; worker 0's epoll is the first in the listener's list.
  CHECK(woken == std::vector<int>{0});
}

TEST_CASE("epoll: an exclusive event skips an epoll without a waiter", "[epoll]") {
  World world;
  std::uint32_t idle = 0;
  std::uint32_t used = 0;
  std::uint32_t listener = 0;
  bool woken = false;
  world.run_as(world.main, [&](Slot me) {
    Layout& w = world.w;
    get_turn(w, me);
    listener = create_file(w, me, FileKind::kSocket);
    w.files[listener].listener.bound.port = 80;
    start_listening(w, listener, 5);
    idle = create_file(w, me, FileKind::kEpoll);
    used = create_file(w, me, FileKind::kEpoll);
    epoll_add(w, idle, 5, listener, EPOLLIN | EPOLLEXCLUSIVE, 1);
    epoll_add(w, used, 5, listener, EPOLLIN | EPOLLEXCLUSIVE, 2);
    woken = wait(w, me, w.files[used].object, kOrigin + 1000, kOp) == WakeReason::kSignalled;
    release_slot(w, me);
    leave(w, me);
  });
  world.start(kPlenty);
  world.connect(80);
  world.time(2000, kPlenty);
  world.drive();
  CHECK(woken);
}

// --- slots' watches ------------------------------------------------------------------------------

TEST_CASE("poll: a watch wakes its slot for the requested bits", "[watches]") {
  World world;
  std::vector<std::string> trace;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  world.run_as(world.main, [&](Slot me) {
    Layout& w = world.w;
    get_turn(w, me);
    a = create_file(w, me, FileKind::kTimerFd);
    b = create_file(w, me, FileKind::kTimerFd);
    arm_timer(w, w.files[a].counter.timer, kOrigin + 100);
    arm_timer(w, w.files[b].counter.timer, kOrigin + 200);
    const std::uint32_t wa = watch_by_slot(w, me, a, kOut);  // never
    const std::uint32_t wb = watch_by_slot(w, me, b, kIn);
    CHECK(wait(w, me, 0, kOrigin + 1000, kOp) == WakeReason::kSignalled);
    CHECK(w.scheduler.now_ns == kOrigin + 200);
    drop_watch(w, wa);
    drop_watch(w, wb);
    CHECK(w.files[b].watches == 0);
    release_slot(w, me);
    leave(w, me);
  });
  world.start(kPlenty);
  for (int t = 100; t <= 1000; t += 100) world.time(t, kPlenty);
  world.drive();
}

TEST_CASE("poll: a watch survives the close of its file, and only its owner drops it",
          "[watches]") {
  Files s;
  const std::uint32_t a = s.create(FileKind::kEventFd);
  const std::uint32_t watch = watch_by_slot(s.w, s.main, a, kIn);
  drop_reference(s.w, a);
  const std::uint32_t b = s.create(FileKind::kEventFd);
  CHECK(a == b);  // the number now belongs to another file
  const std::uint32_t other = watch_by_slot(s.w, s.main, b, kIn);
  CHECK(other != watch);
  drop_watch(s.w, watch);
  CHECK(s.w.files[b].watches == other);
  drop_watch(s.w, other);
  CHECK(s.w.files[b].watches == 0);
}

TEST_CASE("poll: a process that ends leaves no watch behind", "[watches]") {
  Files s;
  const std::uint32_t a = s.create(FileKind::kEventFd);
  const Child child = create_process(s.w, kMainProcess);
  watch_by_slot(s.w, child.slot, a, kIn);
  end_process(s.w, child.process, 0);
  CHECK(s.w.files[a].watches == 0);
}

// --- pipes and streams ---------------------------------------------------------------------------

TEST_CASE("pipes: readable with bytes, writable with room, EOF and EPIPE after a close",
          "[files]") {
  Files s;
  const auto [r, wr] = s.make_pipe(100);
  CHECK(s.w.files[r].readiness == 0);
  CHECK(s.w.files[wr].readiness == kOut);
  s.w.files[r].stream.bytes = 100;
  refresh_readiness(s.w, r, true);
  refresh_readiness(s.w, wr, false);
  CHECK(s.w.files[r].readiness == kIn);
  CHECK(s.w.files[wr].readiness == 0);
  drop_reference(s.w, wr);
  CHECK(s.w.files[r].readiness == (kIn | kHup));
  s.w.files[r].stream.bytes = 0;
  refresh_readiness(s.w, r, false);
  CHECK(s.w.files[r].readiness == kHup);
  const auto [r2, wr2] = s.make_pipe(100);
  drop_reference(s.w, r2);
  CHECK(s.w.files[wr2].readiness == (kOut | kErr));
}

TEST_CASE("unix streams: each direction has its own bytes and its own end", "[files]") {
  Files s;
  const std::uint32_t a = s.create(FileKind::kUnixStream);
  const std::uint32_t b = s.create(FileKind::kUnixStream);
  for (const auto& [file, peer] : {std::pair{a, b}, std::pair{b, a}}) {
    s.w.files[file].stream.peer = peer;
    s.w.files[file].stream.capacity = 10;
  }
  refresh_readiness(s.w, a, false);
  refresh_readiness(s.w, b, false);
  CHECK(s.w.files[a].readiness == kOut);
  s.w.files[b].stream.bytes = 10;
  refresh_readiness(s.w, b, true);
  refresh_readiness(s.w, a, false);
  CHECK(s.w.files[b].readiness == (kIn | kOut));
  CHECK(s.w.files[a].readiness == 0);
  s.w.files[b].stream.peer_shut_write = true;
  refresh_readiness(s.w, b, true);
  CHECK(s.w.files[b].readiness == (kIn | kOut | kRdHup));
  drop_reference(s.w, a);
  CHECK(s.w.files[b].readiness == (kIn | kOut | kHup | kRdHup));
}

TEST_CASE("descriptors in transit keep their files, stay in order, and end with the stream",
          "[files]") {
  Files s;
  const std::uint32_t a = s.create(FileKind::kUnixStream);
  const std::uint32_t b = s.create(FileKind::kUnixStream);
  s.w.files[a].stream.peer = b;
  s.w.files[b].stream.peer = a;
  const std::uint32_t first = s.create(FileKind::kEventFd);
  const std::uint32_t second = s.create(FileKind::kEventFd);
  REQUIRE(send_right(s.w, s.main, b, first, false));
  REQUIRE(send_right(s.w, s.main, b, 0, true));  // a plain one ends the message
  REQUIRE(send_right(s.w, s.main, b, second, true));
  drop_reference(s.w, first);  // the sender closes its own descriptors
  drop_reference(s.w, second);
  const Right one = receive_right(s.w, b);
  CHECK(one.found);
  CHECK_FALSE(one.last);
  CHECK(one.file == first);
  CHECK(s.w.files[first].kind == FileKind::kEventFd);
  const Right two = receive_right(s.w, b);
  CHECK(two.last);
  CHECK(two.file == 0);
  drop_reference(s.w, b);  // the third was never received
  CHECK(s.w.files[second].kind == FileKind::kFree);
  CHECK_FALSE(receive_right(s.w, a).found);
}

// --- counters ------------------------------------------------------------------------------------

TEST_CASE("timerfd: expirations are counted, intervals keep their grid", "[files][time]") {
  Files s;
  const std::uint32_t timer = s.create(FileKind::kTimerFd);
  CounterState& c = s.w.files[timer].counter;
  c.interval_ns = 100;
  arm_timer(s.w, c.timer, kOrigin + 50);
  s.time(49, kPlenty);
  s.admit();
  CHECK(c.count == 0);
  s.time(355, kPlenty);  // 50, 150, 250, 350
  s.admit();
  CHECK(c.count == 4);
  CHECK(s.w.files[timer].readiness == kIn);
  CHECK(s.w.timers[c.timer].deadline_ns == kOrigin + 450);
  disarm_timer(s.w, c.timer);
  s.time(1000, kPlenty);
  s.admit();
  CHECK(c.count == 4);
  CHECK(s.w.scheduler.timers_armed == 0);
}

TEST_CASE("timers expire in the order of a sorted list after any series of arming and disarming",
          "[files][time][random]") {
  const char* given = std::getenv("CRANE_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  INFO("CRANE_SEED=" << seed);
  std::mt19937_64 random(seed);
  Files s;
  std::vector<std::uint32_t> files;
  for (int i = 0; i < 200; ++i) files.push_back(s.create(FileKind::kTimerFd));
  std::map<std::uint32_t, std::int64_t> model;  // armed: file -> deadline
  std::int64_t now = 0;
  for (int step = 0; step < 5'000; ++step) {
    const std::uint32_t file = files[random() % files.size()];
    const std::uint16_t timer = s.w.files[file].counter.timer;
    const std::uint64_t what = random() % 10;
    if (what < 6) {
      const std::int64_t deadline = now + 1 + static_cast<std::int64_t>(random() % 1000);
      arm_timer(s.w, timer, kOrigin + deadline);
      model[file] = deadline;
    } else if (what < 9) {
      disarm_timer(s.w, timer);
      model.erase(file);
    } else {
      now += static_cast<std::int64_t>(random() % 60);
      s.time(now, kPlenty);
      s.admit();
      for (auto it = model.begin(); it != model.end();) {
        const bool due = it->second <= now;
        REQUIRE(s.w.files[it->first].counter.count == (due ? 1 : 0));
        s.w.files[it->first].counter.count = 0;
        it = due ? model.erase(it) : std::next(it);
      }
    }
    std::int64_t next = kNoDeadline;
    for (const auto& [f, deadline] : model) next = std::min(next, kOrigin + deadline);
    REQUIRE(s.w.scheduler.next_deadline.load() == next);
    REQUIRE(s.w.scheduler.timers_armed == model.size());
  }
}

TEST_CASE("eventfd: writable until the count is full", "[files]") {
  Files s;
  const std::uint32_t e = s.create(FileKind::kEventFd);
  CHECK(s.w.files[e].readiness == kOut);
  s.post(e);
  CHECK(s.w.files[e].readiness == (kIn | kOut));
  s.post(e, UINT64_MAX - 2);
  CHECK(s.w.files[e].readiness == kIn);
}
