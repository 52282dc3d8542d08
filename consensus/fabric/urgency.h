// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gives the loop's thread a real-time priority (SCHED_RR) for a moment when it must not wait for a
// processor behind ordinary threads.
//
// 1. After a peer's death.  A dying process tears its memory down at its own priority, in the
//    kernel, a millisecond at a time; its server is killed and does the same.  Meanwhile the
//    replicas that must elect a leader wait: half of a fail-over on a busy machine.
// 2. When the loop starves.  A loop that uses more of a crowded machine than its fair share now and
//    then waits for tens of milliseconds.  Its peers see no heartbeat meanwhile, and would replace
//    it although it is healthy.  A watching thread lends the loop the priority when the loop has
//    not turned for kLateNs, until the loop has used kLentNs of processor time.  The loop must turn
//    without help: one that hangs or is stopped is late for its peers as before (fate sharing, Mu
//    5.1).
//
// A sleeping loop looks like a starving one, and keeps the priority while there is nothing to do.
// The watching thread then sleeps, too, until the loop has turned kTurnsIdle times.  So an idle
// group wakes quickly, and a busy one does not preempt its server all the time (proxy/README.md).
// Without the privilege (CAP_SYS_NICE) nothing changes.
//
// Threads: the loop's thread calls the constructor and turn(); any thread calls the rest.
// INVARIANT URGENCY-1  While the loop does not hold the lent priority, the watching thread sleeps
//                      exactly until the loop would be late if it did not turn again.

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

namespace crane::consensus {

class Urgency {
 public:
  static constexpr std::uint64_t kDeathNs = 20'000'000;  // the duration of a fail-over
  static constexpr std::uint64_t kLookNs = 2'000'000;    // between looks while the priority is lent
  static constexpr std::uint64_t kLateNs = 5'000'000;
  static constexpr std::uint64_t kLentNs = 2'000'000;
  static constexpr std::uint32_t kTurnsIdle = 32;

  Urgency() noexcept;
  ~Urgency() { stop(); }
  Urgency(const Urgency&) = delete;
  Urgency& operator=(const Urgency&) = delete;

  // Starts the watching thread.  Best effort: a failure to start it is not reported.
  void watch() noexcept;
  // Takes the priority back and stops the watching thread.
  void stop() noexcept;
  // A peer died.
  void begin() noexcept;
  // Records that the loop turns.  Cheap.
  void turn(std::uint64_t now_ns) noexcept {
    turned_ns_.store(now_ns, std::memory_order_relaxed);
    if (parked_.load(std::memory_order_relaxed) == 0 || ++turns_ < kTurnsIdle) return;
    turns_ = 0;
    wake();
  }
  // The time until a loop that last turned at `turned_ns` is late; 0: it is late (URGENCY-1).
  static constexpr std::uint64_t until_late_ns(std::uint64_t now_ns,
                                               std::uint64_t turned_ns) noexcept {
    const std::uint64_t late_ns = turned_ns + kLateNs;
    return late_ns > now_ns ? late_ns - now_ns : 0;
  }
  // Raises the calling thread permanently; for a thread that only waits for urgent events.
  static void always() noexcept;

 private:
  void run() noexcept;
  // Returns the time until the next look; none: the thread may sleep until the loop wakes it.
  std::optional<std::uint64_t> look(std::uint64_t now_ns) noexcept;
  void raise(std::uint64_t until_ns) noexcept;
  void lower() noexcept;
  void wake() noexcept;
  std::uint64_t used_ns() const noexcept;

  const pid_t loop_;
  const int ordinary_;  // the loop's ordinary policy
  clockid_t clock_{};   // clock of the loop's processor time
  std::atomic<std::uint64_t> turned_ns_{0};
  std::atomic<std::uint32_t> parked_{0};
  std::uint32_t turns_ = 0;  // turns while the thread is parked; written by the loop
  std::thread thread_;

  std::mutex mutex_;  // guards the members below
  bool stopped_ = false;
  bool raised_ = false;
  std::uint64_t until_ns_ = 0;     // not lowered before this time
  std::uint64_t raised_used_ = 0;  // used_ns() when it was raised
  std::uint64_t seen_used_ = 0;    // used_ns() at the last look
  std::uint32_t idle_looks_ = 0;   // consecutive looks without processor use
};

}  // namespace crane::consensus
