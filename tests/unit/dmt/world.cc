// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/dmt/world.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "dmt/admission.h"
#include "dmt/base/crc.h"
#include "dmt/base/log.h"
#include "dmt/hand_off.h"
#include "dmt/processes.h"
#include "dmt/segment.h"

namespace crane::dmt::test {
namespace {

Layout& map_layout(const Options& o) {
  void* memory = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  Configuration c{};
  c.mode = o.mode;
  c.stall_rule = o.stall_rule;
  c.detached_calls = o.detached;
  c.processors = o.processors;
  c.admission = o.admission;
  c.quantum = o.quantum;
  c.send_buffer = o.send_buffer;
  c.perturb_seed = o.perturb_seed;
  c.perturb_max_us = o.perturb_max_us;
  c.spin = o.spin;
  c.trace = o.trace ? 1 : 0;
  return initialise_segment(memory, c);
}

std::int64_t now_ms() {
  using std::chrono::steady_clock;
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

World::World(const Options& options) : w(map_layout(options)), main(create_main_process(w)) {}

World::~World() {
  for (std::thread& t : threads_) t.join();
  ::munmap(&w, sizeof(Layout));
}

// --- the log -------------------------------------------------------------------------------------

std::uint64_t World::push(EntryType type, GrantTurns grant, const void* body, std::uint32_t size,
                          std::int64_t stamp_ns) {
  if (stamp_ns != 0) stamp_ = stamp_ns;
  SequenceHeader header{};
  header.body_bytes = size;
  header.type = type;
  header.grant = grant;
  header.stamp_ns = static_cast<std::uint64_t>(stamp_);
  header.viewstamp = {view_, Index{++index_}};
  header.crc = crc32c(body, size, crc32c(&header, sizeof header));
  Ring ring(w.header.sequence, reinterpret_cast<std::byte*>(&w));
  const auto total = static_cast<std::uint32_t>(sizeof header + size);
  const std::span<std::byte> room = ring.reserve(total);
  REQUIRE(!room.empty());
  std::memcpy(room.data(), &header, sizeof header);
  if (size > 0) std::memcpy(room.data() + sizeof header, body, size);
  ring.commit(total);
  return index_;
}

std::uint64_t World::start(GrantTurns grant, std::uint64_t view, bool resets) {
  view_ = make_view(view, ReplicaId{0});
  StartBody body{};
  body.seed[0] = 42;
  body.resets = resets ? Resets::kAll : Resets::kNone;
  body.wall_offset_ns = 1'700'000'000'000'000'000;
  return push(EntryType::kStart, grant, &body, sizeof body);
}

std::uint64_t World::connect(std::uint16_t port, GrantTurns grant) {
  ConnectBody body{};
  body.port = port;
  body.peer.port = 40000;
  body.local.port = port;
  return push(EntryType::kConnect, grant, &body, sizeof body);
}

void World::data(std::uint64_t conn, const std::string& bytes, GrantTurns grant) {
  std::string body(sizeof(DataBody), '\0');
  const DataBody head{ConnId{conn}};
  std::memcpy(body.data(), &head, sizeof head);
  body += bytes;
  push(EntryType::kData, grant, body.data(), static_cast<std::uint32_t>(body.size()));
}

void World::shutdown(std::uint64_t conn, GrantTurns grant) {
  const ConnBody body{ConnId{conn}};
  push(EntryType::kShutdown, grant, &body, sizeof body);
}

void World::reset(std::uint64_t conn, GrantTurns grant) {
  const ConnBody body{ConnId{conn}};
  push(EntryType::kReset, grant, &body, sizeof body);
}

void World::window(std::uint64_t conn, std::uint64_t total, GrantTurns grant) {
  const WindowBody body{ConnId{conn}, total};
  push(EntryType::kWindow, grant, &body, sizeof body);
}

void World::signal_entry(int signo, GrantTurns grant) {
  const SignalBody body{static_cast<std::uint32_t>(signo), 0};
  push(EntryType::kSignal, grant, &body, sizeof body);
}

// --- alone ---------------------------------------------------------------------------------------

void World::hold() {
  start(kPlenty);
  REQUIRE(admit_from_node(w));
  REQUIRE(has_turn(w, main));
}

void World::admit() {
  while (admit_next(w)) {
  }
}

std::vector<Output> World::outputs() {
  std::vector<Output> result;
  Ring ring(w.header.output, reinterpret_cast<std::byte*>(&w));
  for (std::span<const std::byte> r = ring.front(); !r.empty(); r = ring.front()) {
    Output o;
    REQUIRE(r.size() >= sizeof o.header);
    std::memcpy(&o.header, r.data(), sizeof o.header);
    o.bytes.assign(reinterpret_cast<const char*>(r.data()) + sizeof o.header,
                   r.size() - sizeof o.header);
    if (o.header.type == OutputType::kAdmitted) {
      points_.push_back({o.header.conn, o.header.clock, o.header.argument});
    } else {
      result.push_back(std::move(o));
    }
    ring.pop();
  }
  return result;
}

// --- with threads --------------------------------------------------------------------------------

Slot World::spawn(std::function<void(Slot)> body, std::uint16_t process) {
  const Slot slot = create_slot(w, process);
  REQUIRE(slot != kNoSlot);
  run_as(slot, std::move(body));
  return slot;
}

void World::run_as(Slot slot, std::function<void(Slot)> body) {
  running_.fetch_add(1);
  threads_.emplace_back([this, slot, body = std::move(body)] {
    body(slot);
    running_.fetch_sub(1);
  });
}

void World::feed_default() {
  const std::int64_t next = w.scheduler.next_deadline.load();
  if (w.scheduler.stalled.load() == 0 && next == kNoDeadline) return;
  push(EntryType::kBubble, 64, nullptr, 0, next == kNoDeadline ? 0 : std::max(next, stamp_));
}

void World::drive(const std::function<void(bool)>& feed) {
  const std::int64_t limit = now_ms() + kLimitMs;
  Ring sequence(w.header.sequence, reinterpret_cast<std::byte*>(&w));
  while (running_.load() > 0) {
    admit_from_node(w);
    if (now_ms() > limit) hung("the threads did not end");
    const bool idle = w.scheduler.holder.load() == kHolderIdle && sequence.empty();
    if (feed) {
      feed(idle);
    } else if (idle) {
      feed_default();
    }
    if (!idle) std::this_thread::yield();
  }
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

void World::until(const char* what, const std::function<bool()>& condition) {
  const std::int64_t limit = now_ms() + kLimitMs;
  while (!condition()) {
    if (now_ms() > limit) hung(what);
    std::this_thread::yield();
  }
}

void World::hung(const char* what) {
  const SchedulerState& s = w.scheduler;
  std::fprintf(stderr, "hung: %s: holder %u clock %llu grant %llu runnable %u head %u stalled %u\n",
               what, s.holder.load(), static_cast<unsigned long long>(s.clock),
               static_cast<unsigned long long>(s.grant_left), s.runnable, s.run_queue.head,
               s.stalled.load());
  for (std::uint32_t i = 0; i < s.slots_used; ++i) {
    const SlotRecord& r = w.slots[i];
    std::fprintf(stderr, "  slot %u state %d parked %u object %llu timer %u\n", i,
                 static_cast<int>(r.state), r.parked.load(),
                 static_cast<unsigned long long>(r.wait_object), w.timers[i].heap);
  }
  std::abort();
}

int in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Catch2 handles signals; the child must die of them, because the parent checks its end.
    for (const int signo : {SIGABRT, SIGSEGV, SIGTERM}) ::signal(signo, SIG_DFL);
    ::alarm(static_cast<unsigned>(kLimitMs / 1000));
    set_message_fd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    set_fence_handler([]() noexcept { ::_exit(kFenced); });
    body();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<int> rotation(Options options, int count, int turns) {
  constexpr Operation kRotates = 7;
  World world(options);
  std::vector<int> trace;
  for (int t = 0; t < count; ++t) {
    world.spawn([&world, &trace, t, turns](Slot me) {
      for (int i = 0; i < turns; ++i) {
        get_turn(world.w, me);
        trace.push_back(t);
        put_turn(world.w, me, kRotates, 0, false);
      }
      finish(world.w, me);
    });
  }
  world.run_as(world.main, [&world](Slot me) { finish(world.w, me); });
  world.start(kPlenty);
  world.drive();
  return trace;
}

}  // namespace crane::dmt::test
