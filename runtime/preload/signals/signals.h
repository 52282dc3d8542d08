// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual signals (DESIGN D11, rule 14): dispositions and handlers are the process' own, pending
// bits and masks are in the segment; the kernel knows of none but the synchronous faults.
//
// Threads: the functions take their own turns unless they say otherwise.

#include <cstdint>

#include "dmt/scheduler.h"
#include "runtime/preload/ground/signal_bits.h"
#include "runtime/preload/ground/types.h"

#include "dmt/base/thread_safety.h"

namespace crane {

// Handlers in the kernel for faults: SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS.
void install_fault_handlers() noexcept;

// exec: handlers fall back to the default.  REQUIRES the turn.
CRANE_REQUIRES_TURN void reset_handlers_for_exec() noexcept;

inline constexpr int kSignals = 64;
inline constexpr int kFirstRealTime = 34;
// Signals 32 and 33 are libc's own.
inline bool is_valid_signal(int s) noexcept {
  return s >= 1 && s <= kSignals && (s < 32 || s >= kFirstRealTime);
}

inline std::uint64_t value_of(const union sigval& v) noexcept {
  return reinterpret_cast<std::uintptr_t>(v.sival_ptr);
}
// What a signal of this process tells of its sender.  REQUIRES the turn.
dmt::SignalInfo sent_by_this_process(int code, std::uint64_t value) noexcept;
// Whether the kernel lets this process signal the other one: it knows the users of both, and is
// asked with signal 0, which is delivered to none.  SIGCONT may go to all of a session.
bool may_signal(std::uint32_t pid, int signo) noexcept;
// Sends, as kill does: an error number.  REQUIRES the turn.
int send_to_process(dmt::Layout& w, std::uint16_t process, int signo,
                    const dmt::SignalInfo& info) noexcept;
void fill_siginfo(siginfo_t& out, int signo, const dmt::SignalInfo& sent) noexcept;

// Replaces the calling thread's mask and returns the old one.  REQUIRES the turn.
std::uint64_t exchange_mask(dmt::Layout& w, std::uint64_t mask) noexcept;

// For ppoll, pselect, epoll_pwait, sigsuspend: a mask for the length of one blocking call.  The
// signals that become deliverable only under it run their handlers under it.
class TemporaryMask {
 public:
  // REQUIRES the turn.
  TemporaryMask(dmt::Layout& w, const sigset_t* mask) noexcept;
  // REQUIRES the turn.
  void restore() noexcept;

 private:
  dmt::Layout& w_;
  const bool given_;
  std::uint64_t saved_;
};

}  // namespace crane
