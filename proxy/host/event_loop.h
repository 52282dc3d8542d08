// SPDX-License-Identifier: Apache-2.0
#pragma once
// The node's event loop: libevent, one timer, and descriptors and signals that are always watched.
//
// Threads: one.
// INVARIANT LOOP-1  The timer fires no later than the time of the last arm(); it may fire at an
//                   earlier time that was armed before.
// INVARIANT LOOP-2  A signal of watch_signal() that arrives after the loop has ended does nothing:
//                   a node that is about to leave ends with its own status.
// INVARIANT LOOP-3  The loop outlives all its listeners: when it ends, it holds no event whose
//                   memory has been freed.

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sched.h>

#include <cstdint>
#include <deque>

#include "dmt/base/result.h"
#include "dmt/spin_budget.h"
#include "proxy/clients/woken.h"

namespace crane::node {

class EventLoop {
 public:
  EventLoop() = default;
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  class Owner : public proxy::Woken {
   public:
    virtual void signalled(int signo) = 0;

   protected:
    ~Owner() = default;
  };

  // `owner` must outlive it.
  Outcome open(Owner& owner);
  event_base* base() const noexcept { return base_; }

  // Wakes the loop when `fd` is readable.  `drain`: reads and discards the bytes.
  void wake_by(int fd, bool drain);
  void watch_signal(int signo);
  // Stops watching the timer and all descriptors of wake_by().
  void stop_waking();

  // Wakes the loop at `due_ns` (CLOCK_MONOTONIC).  If the timer is armed for an earlier time, it is
  // left alone: an early wake costs less than a system call per iteration.
  void arm(std::int64_t due_ns);

  // Sleeps until an event and handles the events that have come.
  void wait() {
    ++waits_;
    event_base_loop(base_, EVLOOP_ONCE);
  }
  // Handles the pending events without sleeping.
  void poll() { event_base_loop(base_, EVLOOP_ONCE | EVLOOP_NONBLOCK); }
  // Repeats poll() until `condition()` or until a watched event wakes the loop; returns whether one
  // of these happened.  The number of polls depends on whether recent calls succeeded.  Yields the
  // processor between polls.
  template <typename Condition>
  bool poll_for(const Condition& condition) {
    const std::uint32_t budget = polls_.next(kPollsMost);
    if (budget == 0) return false;
    const std::uint64_t before = wakes_;
    for (std::uint32_t i = 0; i < budget; ++i) {
      poll();
      if (wakes_ != before || condition()) {
        polls_.helped();
        return true;
      }
      ::sched_yield();
    }
    polls_.failed();
    return false;
  }
  // How often wait() was called.
  std::uint64_t waits() const noexcept { return waits_; }

 private:
  struct Watch {
    EventLoop* loop;
    bool drain;
    event event_;
  };
  // This many polls take about as long as a wake-up on another core: 20 us.
  static constexpr std::uint32_t kPollsMost = 30;

  void woken() {
    ++wakes_;
    owner_->woke();
  }
  static void on_readable(int fd, short what, void* watch);

  event_base* base_ = nullptr;
  Owner* owner_ = nullptr;
  int timer_fd_ = -1;
  event timer_event_{};
  std::int64_t armed_ns_ = 0;
  std::uint64_t waits_ = 0;
  std::uint64_t wakes_ = 0;  // callbacks that called woke()
  dmt::SpinBudget polls_;
  std::deque<Watch> watches_;  // a deque, because events must not move
  std::deque<event> signals_;
};

}  // namespace crane::node
