// SPDX-License-Identifier: Apache-2.0
#pragma once
// When the loop's thread must not wait for a processor behind ordinary threads, it gets a real-time
// priority (SCHED_RR) for a moment.
//
// 1. After a peer's death.  A process that dies tears its memory down at its own priority, in the
//    kernel, a millisecond at a time; its server is killed and does the same.  Meanwhile the
//    replicas that have to elect a leader wait: half of a fail-over on a busy machine.
// 2. When it starves.  A loop that uses more of a crowded machine than its fair share is kept
//    waiting for tens of milliseconds, now and then; no process reads its heartbeat meanwhile, and
//    it would be replaced though it is well.  A thread that does nothing else looks when the loop
//    has not turned for kLateNs, and lends it the priority until it has used kLentNs of a
//    processor.  The loop must turn itself: one that hangs or is stopped is late for its peers as
//    before (fate sharing, Mu 5.1).
//
// A loop that sleeps looks like one that starves, and keeps the priority while there is nothing to
// do; the thread then sleeps too, until the loop has turned kTurnsIdle times.  So an idle group is
// quick to wake, and a busy one does not preempt its server all the time (proxy/README.md).
// Without the privilege (CAP_SYS_NICE) nothing changes.
//
// Threads: the constructor and turn() by the loop's; the rest by any.
// INVARIANT URGENCY-1  While the loop has not been lent the priority, the thread sleeps until the
//                      loop would be late if it did not turn again, and no longer.

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
  static constexpr std::uint64_t kDeathNs = 20'000'000;  // for as long as a fail-over takes
  static constexpr std::uint64_t kLookNs = 2'000'000;    // at a loop that has been lent it
  static constexpr std::uint64_t kLateNs = 5'000'000;
  static constexpr std::uint64_t kLentNs = 2'000'000;
  static constexpr std::uint32_t kTurnsIdle = 32;

  Urgency() noexcept;
  ~Urgency() { stop(); }
  Urgency(const Urgency&) = delete;
  Urgency& operator=(const Urgency&) = delete;

  // From here on the loop's priority is looked after.  It is only a hint: nothing is said when
  // there can be no thread.
  void watch() noexcept;
  // Takes the priority back, for good.
  void stop() noexcept;
  // A peer died.
  void begin() noexcept;
  // The loop turns.  Cheap.
  void turn(std::uint64_t now_ns) noexcept {
    turned_ns_.store(now_ns, std::memory_order_relaxed);
    if (parked_.load(std::memory_order_relaxed) == 0 || ++turns_ < kTurnsIdle) return;
    turns_ = 0;
    wake();
  }
  // How long a loop that turned at `turned_ns` is not late; 0: it is (URGENCY-1).
  static constexpr std::uint64_t until_late_ns(std::uint64_t now_ns,
                                               std::uint64_t turned_ns) noexcept {
    const std::uint64_t late_ns = turned_ns + kLateNs;
    return late_ns > now_ns ? late_ns - now_ns : 0;
  }
  // For a thread that does nothing but wait for what is urgent.
  static void always() noexcept;

 private:
  void run() noexcept;
  // When to look again; none: there is nothing to do, for a while.
  std::optional<std::uint64_t> look(std::uint64_t now_ns) noexcept;
  void raise(std::uint64_t until_ns) noexcept;
  void lower() noexcept;
  void wake() noexcept;
  std::uint64_t used_ns() const noexcept;

  const pid_t loop_;
  const int ordinary_;  // its policy otherwise
  clockid_t clock_{};   // of the processor time that the loop used
  std::atomic<std::uint64_t> turned_ns_{0};
  std::atomic<std::uint32_t> parked_{0};
  std::uint32_t turns_ = 0;  // while the thread is parked; the loop's
  std::thread thread_;

  std::mutex mutex_;  // for what follows
  bool stopped_ = false;
  bool raised_ = false;
  std::uint64_t until_ns_ = 0;     // not lowered before
  std::uint64_t raised_used_ = 0;  // used_ns() when it was raised
  std::uint64_t seen_used_ = 0;    // used_ns() at the last look
  std::uint32_t idle_looks_ = 0;   // since it used any
};

}  // namespace crane::consensus
