// SPDX-License-Identifier: Apache-2.0
// The parts of libcrane.so that are plain functions: time arithmetic, random blocks, object names.
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <set>

#include "dmt/segment.h"
#include "runtime/preload/processes/fork.h"
#include "runtime/preload/self/thread.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/turn/fairness.h"
#include "runtime/preload/turn/vrandom.h"
#include "runtime/preload/turn/vtime.h"

namespace crane {
namespace {

// A segment of this process, with this thread as slot 1.
class Segment {
 public:
  Segment()
      : memory_(mmap(nullptr, sizeof(dmt::Layout), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    REQUIRE(memory_ != MAP_FAILED);
    dmt::Configuration c{};
    c.mode = dmt::Mode::kSerial;
    c.quantum = 10;
    segment = &dmt::initialise_segment(memory_, c);
    self.slot = 1;
    self.process = 1;
    self.space = 7;
    restart_random();
  }
  ~Segment() {
    self = ThreadBlock{};
    segment = nullptr;
    munmap(memory_, sizeof(dmt::Layout));
  }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

 private:
  void* memory_;
};

}  // namespace

TEST_CASE("chacha20_block gives the block of RFC 8439 2.3.2") {
  const unsigned input[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574,
                              0x03020100, 0x07060504, 0x0b0a0908, 0x0f0e0d0c,
                              0x13121110, 0x17161514, 0x1b1a1918, 0x1f1e1d1c,
                              0x00000001, 0x09000000, 0x4a000000, 0x00000000};
  const unsigned char expected[16] = {0x10, 0xf1, 0xe7, 0xe4, 0xd1, 0x3b, 0x59, 0x15,
                                      0x50, 0x0f, 0xdd, 0x1f, 0xa3, 0x20, 0x71, 0xc4};
  unsigned char out[64];
  chacha20_block(input, out);
  CHECK(std::memcmp(out, expected, sizeof expected) == 0);
  CHECK(out[63] == 0x4e);
}

TEST_CASE("virtual randomness depends only on seed, slot and own turns, however it is divided") {
  Segment attached;
  segment->scheduler.seed[0] = 42;
  unsigned char whole[200], parts[200];
  virtual_random(whole, sizeof whole);
  restart_random();
  for (std::size_t at = 0, n = 1; at < sizeof parts; at += n, n = 1 + n % 9) {
    if (n > sizeof parts - at) n = sizeof parts - at;
    virtual_random(parts + at, n);
  }
  CHECK(std::memcmp(whole, parts, sizeof whole) == 0);
  const auto differs = [&] {
    restart_random();
    virtual_random(parts, sizeof parts);
    return std::memcmp(whole, parts, sizeof whole) != 0;
  };
  segment->slots[1].operations = 1;
  CHECK(differs());
  segment->slots[1].operations = 0;
  segment->slots[1].generation = 1;
  CHECK(differs());
  segment->slots[1].generation = 0;
  segment->scheduler.seed[3] = 1;
  CHECK(differs());
}

TEST_CASE("agreed bytes depend only on the seed, and are not part of a thread's stream") {
  Segment attached;
  segment->scheduler.seed[0] = 42;
  unsigned char first[16], again[16], stream[16];
  agreed_bytes(first);
  virtual_random(stream, sizeof stream);
  segment->slots[1].operations = 7;
  restart_random();
  agreed_bytes(again);
  CHECK(std::memcmp(first, again, sizeof first) == 0);
  CHECK(std::memcmp(first, stream, sizeof first) != 0);
  segment->scheduler.seed[0] = 43;
  agreed_bytes(again);
  CHECK(std::memcmp(first, again, sizeof first) != 0);
}

TEST_CASE("between two turns the wall clock shows the time of the last one") {
  Segment attached;
  segment->scheduler.now_ns = 1000;
  segment->scheduler.wall_offset_ns = 5 * kNsPerSecond;
  note_time(*segment);
  segment->scheduler.wall_offset_ns = 9 * kNsPerSecond;  // a STEP that another thread has admitted
  CHECK(virtual_wall_now() == 5 * kNsPerSecond + 1001);
}

TEST_CASE("times saturate instead of wrapping, and a deadline is never `none`") {
  Segment attached;
  CHECK(saturating_add(INT64_MAX, 1) == INT64_MAX);
  CHECK(saturating_add(INT64_MIN, -1) == INT64_MIN);
  CHECK(to_ns(timespec{INT64_MAX / 2, 0}) == INT64_MAX);
  CHECK(to_ns(timespec{-5, 0}) == -5 * kNsPerSecond);
  CHECK(to_ns(timespec{2, 5}) == 2 * kNsPerSecond + 5);
  CHECK_FALSE(is_valid(timespec{0, kNsPerSecond}));
  CHECK_FALSE(is_valid(timespec{0, -1}));
  segment->scheduler.now_ns = 1000;
  segment->scheduler.wall_offset_ns = 5 * kNsPerSecond;
  CHECK(deadline_after(*segment, INT64_MAX) < dmt::kNoDeadline);
  CHECK(deadline_after(*segment, 5) == 1005);
  CHECK(deadline_at(*segment, CLOCK_MONOTONIC, {7, 0}) == 7 * kNsPerSecond);
  CHECK(deadline_at(*segment, CLOCK_REALTIME, {7, 0}) == 2 * kNsPerSecond);
  CHECK(deadline_at(*segment, CLOCK_MONOTONIC, {INT64_MAX, 0}) < dmt::kNoDeadline);
}

TEST_CASE("an object's name depends on its address space unless its memory is shared") {
  Segment attached;
  int here = 0, there = 0;
  add_mapping(*segment, &there, sizeof there, 7, 0);
  const std::uint64_t own = object_of(&here, false), shared = object_of(&there, true);
  CHECK(object_of(&here, true) == own);
  self.space = 8;
  CHECK(object_of(&here, false) != own);
  CHECK(object_of(&here, true) == object_of(&here, false));
  CHECK(object_of(&there, true) == shared);
  CHECK(object_of(&there, false) != shared);
  remove_mapping(&there, sizeof there);
  // Never one of the scheduler's names, which count up from 1 or have only bit 62 set.
  CHECK((own >> 63) == 1);
  std::set<std::uint64_t> names;
  static char many[4096];
  for (char& c : many) names.insert(object_of(&c, false));
  CHECK(names.size() == sizeof many);
}

TEST_CASE("the table of threads reuses entries and finds them by handle and by id") {
  Segment attached;
  segment->slots[3].exit_object = 33;
  ThreadEntry* a = add_thread(*segment, 1001, 3, false);
  ThreadEntry* b = add_thread(*segment, 1002, 4, true);
  REQUIRE(a != nullptr);
  REQUIRE(b != nullptr);
  CHECK(a->exit_object == 33);
  CHECK(find_thread(1001) == a);
  b->thread_id = 77;
  CHECK(find_thread_by_id(77) == b);
  b->finished = true;
  CHECK(find_thread_by_id(77) == nullptr);
  remove_thread(*a);
  CHECK(find_thread(1001) == nullptr);
  CHECK(add_thread(*segment, 1003, 5, false) == a);
  self.entry = b;
  forget_other_threads();
  CHECK(find_thread(1003) == nullptr);
  CHECK(find_thread(1002) == b);
  remove_thread(*b);
}

TEST_CASE("a thread that failed kPatience times reserves the object until it gets it") {
  Segment attached;
  constexpr std::uint64_t kObject = 99;
  int failures = 0;
  for (int i = 1; i < kPatience; ++i) note_failure(kObject, failures);
  CHECK(waiters_to_wake(kObject) == 1);
  note_failure(kObject, failures);
  CHECK(waiters_to_wake(kObject) == dmt::kAll);
  CHECK_FALSE(is_reserved_for_another(kObject));
  self.slot = 2;
  CHECK(is_reserved_for_another(kObject));
  end_reservation(*segment, kObject, false);  // not this thread's: no effect
  CHECK(is_reserved_for_another(kObject));
  self.slot = 1;
  end_reservation(*segment, kObject, false);
  self.slot = 2;
  CHECK_FALSE(is_reserved_for_another(kObject));
}

TEST_CASE("a mask never blocks SIGKILL and SIGSTOP") {
  Segment attached;
  const std::uint64_t old = exchange_mask(*segment, ~0ull);
  CHECK(old == 0);
  const std::uint64_t now = exchange_mask(*segment, 0);
  CHECK((now & bit_of(SIGKILL)) == 0);
  CHECK((now & bit_of(SIGSTOP)) == 0);
  CHECK((now & bit_of(SIGTERM)) != 0);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  CHECK(bits_of(set) == bit_of(SIGUSR2));
  CHECK(sigismember(&set, SIGUSR2) == 1);
  TemporaryMask mask(*segment, &set);
  CHECK(segment->slots[1].blocked_signals == bit_of(SIGUSR2));
  mask.restore();
  CHECK(segment->slots[1].blocked_signals == 0);
}

TEST_CASE("wait statuses match those of waitpid") {
  CHECK(WIFEXITED(status_of_exit(3)));
  CHECK(WEXITSTATUS(status_of_exit(0x103)) == 3);
  CHECK(WIFSIGNALED(status_of_signal(SIGTERM)));
  CHECK(WTERMSIG(status_of_signal(SIGTERM)) == SIGTERM);
}

}  // namespace crane
