// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica without a server and without consensus: a Layout on an anonymous shared mapping, with
// threads of the test as slots. The test's own thread is the node, which pushes entries with their
// CRC into the Paxos sequence.
//
// There are two ways to use it. Alone: hold() gives the test's thread the turn of the main slot;
// after that it may call all functions of dmt/ directly and admit() entries one by one. With
// threads: spawn() them (while no thread has the turn, or under it) and drive() until all have
// ended.
//
// Threads: the object belongs to the test's thread.

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "dmt/layout.h"
#include "dmt/scheduler.h"
#include "dmt/sequence/entry.h"
#include "dmt/sequence/output.h"

namespace crane::dmt::test {

// Returns the IPv4 address first.0.0.last.
inline VirtualAddress address_in(std::uint8_t first, std::uint16_t port, std::uint8_t last) {
  VirtualAddress a{};
  a.family = AF_INET;
  a.port = port;
  a.ip[0] = first;
  a.ip[3] = last;
  return a;
}

inline constexpr GrantTurns kPlenty = 1'000'000;
inline constexpr std::int64_t kOrigin = 1'000'000'000;  // virtual time at the first START
inline constexpr std::int64_t kLimitMs = 30'000;        // a hang is reported after this time

struct Output {
  OutputHeader header;
  std::string bytes;
};

struct Options {
  Mode mode = Mode::kParallel;
  Admission admission = Admission::kGrant;
  std::uint32_t quantum = 1;
  std::uint64_t send_buffer = 3000;
  std::uint64_t perturb_seed = 0;
  std::uint32_t perturb_max_us = 0;
  std::uint32_t spin = 0;
  bool trace = false;
  StallRule stall_rule = StallRule::kOff;
  std::uint32_t detached = 0;
  std::uint64_t processors = 0;
};

class World {
 public:
  explicit World(const Options& options = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Layout& w;
  Slot main;  // the main process' first slot

  // --- the log --------------------------------------------------------------------------------

  // Pushes one entry and returns its index. stamp 0: the stamp of the last entry.
  std::uint64_t push(EntryType type, GrantTurns grant, const void* body = nullptr,
                     std::uint32_t size = 0, std::int64_t stamp_ns = 0);
  std::uint64_t start(GrantTurns grant, std::uint64_t view = 1, bool resets = true);
  std::uint64_t bubble(GrantTurns grant) { return push(EntryType::kBubble, grant); }
  std::uint64_t time(std::int64_t after_origin_ns, GrantTurns grant) {
    return push(EntryType::kTime, grant, nullptr, 0, kOrigin + after_origin_ns);
  }
  std::uint64_t connect(std::uint16_t port, GrantTurns grant = kPlenty);
  void data(std::uint64_t conn, const std::string& bytes, GrantTurns grant = kPlenty);
  void shutdown(std::uint64_t conn, GrantTurns grant = kPlenty);
  void reset(std::uint64_t conn, GrantTurns grant = kPlenty);
  void window(std::uint64_t conn, std::uint64_t total, GrantTurns grant = kPlenty);
  void signal_entry(int signo, GrantTurns grant = kPlenty);

  // --- alone ------------------------------------------------------------------------------------

  // Admits a START with plenty of turns and takes the turn for the main slot.
  void hold();
  // Admits all pushed entries. REQUIRES the turn.
  void admit();
  // Returns the server's records since the last call, without the points, which points() returns.
  std::vector<Output> outputs();
  // (log index, clock, schedule hash) of all admissions found by outputs().
  struct Point {
    std::uint64_t index, clock, hash;
  };
  const std::vector<Point>& points() const { return points_; }

  // --- with threads ------------------------------------------------------------------------------

  // Makes a slot of `process` and its thread. REQUIRES the turn, or that no thread has run yet.
  Slot spawn(std::function<void(Slot)> body, std::uint16_t process = 1);
  // Starts the thread of an existing slot (the main one).
  void run_as(Slot slot, std::function<void(Slot)> body);
  // Acts as the node until all threads have ended. `feed` pushes entries; it is called repeatedly,
  // with true when no entry waits and the turn is unowned. By default, when the turn is unowned, it
  // pushes a bubble of 64 turns whose stamp is the next deadline.
  void drive(const std::function<void(bool idle)>& feed = {});
  void feed_default();
  std::uint64_t last_index() const { return index_; }

  // Polls a condition; after kLimitMs it ends the program with a description.
  void until(const char* what, const std::function<bool()>& condition);

 private:
  [[noreturn]] void hung(const char* what);
  std::vector<Point> points_;
  std::vector<std::thread> threads_;
  std::atomic<int> running_{0};
  std::uint64_t index_ = 0;
  std::int64_t stamp_ = kOrigin;
  View view_{};
};

// Ends a thread of a test like pthread_exit.
inline void finish(Layout& w, Slot me) {
  get_turn(w, me);
  release_slot(w, me);
  leave(w, me);
}

// Runs `body` in a child process whose fence handler exits with kFenced. Returns the exit status,
// or 128 + signal. The child's messages are discarded.
inline constexpr int kFenced = 42;
int in_child(const std::function<void()>& body);

// `count` threads record their number once per turn, `turns` times each. Returns the whole record.
std::vector<int> rotation(Options options, int count, int turns);

}  // namespace crane::dmt::test
