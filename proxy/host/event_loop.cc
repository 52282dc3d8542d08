// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/event_loop.h"

#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "dmt/base/assert.h"

namespace crane::node {
namespace {
constexpr std::int64_t kNotArmed = std::numeric_limits<std::int64_t>::max();
}  // namespace

EventLoop::~EventLoop() {
  stop_waking();
  for (event& signal : signals_) event_del(&signal);
  if (timer_fd_ >= 0) ::close(timer_fd_);
  if (base_ == nullptr) return;
  poll();  // libevent frees its buffers there
  CRANE_ASSERT(event_base_get_num_events(base_, EVENT_BASE_COUNT_ADDED) == 0);  // LOOP-3
  event_base_free(base_);
}

Outcome EventLoop::open(Owner& owner) {
  owner_ = &owner;
  armed_ns_ = kNotArmed;
  base_ = event_base_new();
  timer_fd_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (base_ == nullptr || timer_fd_ < 0) return system_error("event loop");
  event_assign(
      &timer_event_, base_, timer_fd_, EV_READ | EV_PERSIST,
      [](int fd, short, void* argument) {
        auto& loop = *static_cast<EventLoop*>(argument);
        loop.woken();
        std::uint64_t expirations = 0;
        if (::read(fd, &expirations, sizeof expirations) > 0) loop.armed_ns_ = kNotArmed;
      },
      this);
  event_add(&timer_event_, nullptr);
  return Done{};
}

void EventLoop::on_readable(int fd, short, void* watch) {
  auto& that = *static_cast<Watch*>(watch);
  that.loop->woken();
  char bytes[256];
  if (that.drain && ::read(fd, bytes, sizeof bytes) < 0) return;  // spurious
}

void EventLoop::wake_by(int fd, bool drain) {
  watches_.push_back({this, drain, {}});
  Watch& watch = watches_.back();
  event_assign(&watch.event_, base_, fd, EV_READ | EV_PERSIST, on_readable, &watch);
  event_add(&watch.event_, nullptr);
}

void EventLoop::watch_signal(int signo) {
  ::signal(signo, SIG_IGN);  // the handler that libevent restores when the loop ends (LOOP-2)
  event& watched = signals_.emplace_back();
  evsignal_assign(
      &watched, base_, signo,
      [](int signal, short, void* owner) { static_cast<Owner*>(owner)->signalled(signal); },
      owner_);
  event_add(&watched, nullptr);
}

void EventLoop::stop_waking() {
  for (Watch& watch : watches_) event_del(&watch.event_);
  watches_.clear();
  if (event_initialized(&timer_event_)) event_del(&timer_event_);
}

void EventLoop::arm(std::int64_t due_ns) {
  if (due_ns >= armed_ns_) return;  // LOOP-1
  armed_ns_ = due_ns;
  const std::int64_t at = std::max<std::int64_t>(due_ns, 1);
  const itimerspec when{{0, 0}, {at / 1'000'000'000, at % 1'000'000'000}};
  ::timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace crane::node
