// SPDX-License-Identifier: Apache-2.0
#pragma once
// The node's event loop: libevent, one timer, and what a node listens to for all of its life.
//
// Threads: one.
// INVARIANT LOOP-1  The timer fires at the latest when arm() was last told, or at an earlier time
//                   that it was told before.
// INVARIANT LOOP-2  A signal of watch_signal() that comes when the loop has ended does nothing: a
// node
//                   that is about to leave leaves with its own status.
// INVARIANT LOOP-3  The loop outlives all that listens to it: when it ends, no event is left in it
//                   whose memory is gone.

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

  // `owner` outlives it.
  Outcome open(Owner& owner);
  event_base* base() const noexcept { return base_; }

  // Wakes the loop when `fd` can be read; `drain`: what can be read is of no use and is read away.
  void wake_by(int fd, bool drain);
  void watch_signal(int signo);
  // Of all descriptors of wake_by(), and the timer's: they are not looked at any more.
  void stop_waking();

  // Wakes the loop at `due_ns` (CLOCK_MONOTONIC).  A timer that fires too early costs less than a
  // system call per iteration: a later time than the armed one is left for then.
  void arm(std::int64_t due_ns);

  // Sleeps until an event, and carries out what has come.
  void wait() {
    ++waits_;
    event_base_loop(base_, EVLOOP_ONCE);
  }
  // Carries out what is there.
  void poll() { event_base_loop(base_, EVLOOP_ONCE | EVLOOP_NONBLOCK); }
  // As poll(), again and again for as long as that has helped of late, until `came`: whether it
  // did, or something listened to has woken the loop.  Gives way to whoever wants the processor.
  template <typename Came>
  bool poll_for(const Came& came) {
    const std::uint32_t budget = polls_.next(kPollsMost);
    if (budget == 0) return false;
    const std::uint64_t before = wakes_;
    for (std::uint32_t i = 0; i < budget; ++i) {
      poll();
      if (wakes_ != before || came()) {
        polls_.helped();
        return true;
      }
      ::sched_yield();
    }
    polls_.failed();
    return false;
  }
  // How often it slept, or would have.
  std::uint64_t waits() const noexcept { return waits_; }

 private:
  struct Watch {
    EventLoop* loop;
    bool drain;
    event event_;
  };
  // About as many as take as long as being woken on another core: 20 us.
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
  std::deque<Watch> watches_;  // events do not move
  std::deque<event> signals_;
};

}  // namespace crane::node
