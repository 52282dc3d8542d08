// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual signals (DESIGN D11, rule 14). Dispositions and handlers are the process' own; pending
// bits and masks are in the segment. The kernel has handlers only for synchronous faults.
//
// Threads: the functions take a turn unless their comment says otherwise.

#include <cstdint>

#include "dmt/scheduler.h"
#include "runtime/preload/ground/signal_bits.h"
#include "runtime/preload/ground/types.h"

#include "dmt/base/thread_safety.h"

namespace crane {

// Installs kernel handlers for faults: SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS.
void install_fault_handlers() noexcept;

// Resets handlers to the default for exec. REQUIRES the turn.
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
// The sender's data in a signal of this process. REQUIRES the turn.
dmt::SignalInfo sent_by_this_process(int code, std::uint64_t value) noexcept;
// Whether the kernel permits this process to signal the other one. The kernel knows the users of
// both; the query is a kill with signal 0, which delivers nothing. SIGCONT may go to the whole
// session.
bool may_signal(std::uint32_t pid, int signo) noexcept;
// Sends a signal as kill does; returns an error number. REQUIRES the turn.
int send_to_process(dmt::Layout& w, std::uint16_t process, int signo,
                    const dmt::SignalInfo& info) noexcept;
void fill_siginfo(siginfo_t& out, int signo, const dmt::SignalInfo& sent) noexcept;

// Replaces the calling thread's mask and returns the previous one. REQUIRES the turn.
std::uint64_t exchange_mask(dmt::Layout& w, std::uint64_t mask) noexcept;

// For ppoll, pselect, epoll_pwait, sigsuspend: a mask for the duration of one blocking call.
// Signals that only this mask makes deliverable run their handlers under it.
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
