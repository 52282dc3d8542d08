// SPDX-License-Identifier: Apache-2.0
// The stall rule in the server's threads. The node interrupts a process whose thread has the turn
// but does not use it; that thread then finds out where it is (dmt/stall.h).
//
// The node knows processes, not threads. A thread that gets the signal by mistake forwards it to
// the right one. The signal is SIGURG, because a process that has just executed another program
// ignores it.
#include "runtime/preload/turn/probe.h"

#include <sys/resource.h>
#include <ucontext.h>

#include <cstring>
#include <ctime>

#include "dmt/base/raw.h"
#include "dmt/scheduler.h"
#include "dmt/sequence/turn_record.h"
#include "dmt/stall.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/self/thread.h"

namespace crane {
namespace {

constexpr int kProbe = SIGURG;

std::int64_t clock_ns(clockid_t clock) noexcept {
  timespec t{};
  raw_syscall(SYS_clock_gettime, clock, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

// Returns the number of voluntary context switches, which include our own waits.
std::int64_t sleeps() noexcept {
  rusage usage{};
  raw_syscall(SYS_getrusage, RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// Hashes the registers that belong to the thread: REG_R8, the first, to the flags.
std::uint64_t hash_of(const gregset_t& registers) noexcept {
  std::uint64_t hash = 0;
  for (int i = REG_R8; i <= REG_EFL; ++i) {
    hash = fold_schedule(hash, static_cast<std::uint64_t>(registers[i]), 0);
  }
  return hash;
}

void forward_probe(std::uint32_t holder) noexcept {
  if (holder == value(dmt::kNodeSlot) || holder >= dmt::kSlotsMax) return;
  const std::uint32_t thread = without_turn().slots[holder].thread_id;
  if (thread != 0) raw_syscall(SYS_tgkill, raw_syscall(SYS_getpid), thread, kProbe);
}

// Leaves the processor that the threads share: other threads do not wait for this one any more.
void leave_processor() noexcept {
  const std::uint64_t wanted = without_turn().header.configuration.processors;
  std::uint64_t own[16] = {};
  if (wanted == 0 || raw_syscall(SYS_sched_getaffinity, 0, sizeof own, own) < 0) return;
  if (raw_syscall(SYS_sched_setaffinity, 0, sizeof wanted, &wanted) == 0) self.home = own[0];
}

void on_probe(int, siginfo_t* info, void* context) noexcept {
  WithinCrane within;
  const std::uint32_t holder = without_turn().scheduler.holder.load(std::memory_order_acquire);
  if (holder != self.slot) {
    if (info->si_code != SI_TKILL) forward_probe(holder);
    return;
  }
  if (within.was_inside()) return;
  const int saved = errno;
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const dmt::Sample sample{static_cast<std::uint64_t>(registers[REG_RIP]),
                           clock_ns(CLOCK_THREAD_CPUTIME_ID), clock_ns(CLOCK_MONOTONIC),
                           hash_of(registers), sleeps()};
  const bool yielded = dmt::probed(without_turn(), own_slot(), sample, self.probe);
  self.probe.released_sleeps = sleeps();
  self.probe.released_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  if (yielded && without_turn().slots[self.slot].detached.load(std::memory_order_relaxed) != 0)
    leave_processor();
  errno = saved;
}

}  // namespace

void return_to_processor() noexcept {
  raw_syscall(SYS_sched_setaffinity, 0, sizeof self.home, &self.home);
  self.home = 0;
}

void install_probe_handler() noexcept {
  if (without_turn().header.configuration.stall_rule == dmt::StallRule::kOff) return;
  struct sigaction action {};
  action.sa_sigaction = on_probe;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  real::sigaction(kProbe, &action, nullptr);
  const std::uint64_t bit = 1ull << (kProbe - 1);
  raw_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, nullptr, sizeof bit);
}

}  // namespace crane
