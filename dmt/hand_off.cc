// SPDX-License-Identifier: Apache-2.0
#include "dmt/hand_off.h"

#include <bit>
#include <ctime>

#include "dmt/base/assert.h"
#include "dmt/base/futex.h"
#include "dmt/base/raw.h"
#include "dmt/node_link.h"
#include "dmt/parking.h"
#include "dmt/preempt_requests.h"
#include "dmt/spin_budget.h"

namespace crane::dmt {
namespace {

// A perturbed thread is delayed once in this many hand-offs.
constexpr std::uint64_t kPerturbPeriod = 16;

thread_local std::uint64_t perturb_state = 0;
thread_local SpinBudget spin_budget;
// Number of spinning threads in this process.
std::atomic<std::uint32_t> spinners{0};
thread_local std::uint32_t restores_seen = 0;
std::atomic<RestoreHandler> restore_handler{nullptr};

std::uint64_t next_random() noexcept {
  // xorshift64*: any stream will do, it only perturbs.
  perturb_state ^= perturb_state >> 12;
  perturb_state ^= perturb_state << 25;
  perturb_state ^= perturb_state >> 27;
  return perturb_state * 0x2545F4914F6CDD1D;
}

// REQUIRES nothing: it reads fields of the turn only after it has seen the turn.
bool can_continue(const Layout& w, std::uint16_t me, Until until) noexcept {
  const SchedulerState& s = w.scheduler;
  if (s.holder.load(std::memory_order_seq_cst) != me) return false;
  if (until == Until::kHasTurn) return true;
  if (s.clock < s.leader_clock_limit.load(std::memory_order_seq_cst)) return true;
  return has_preempt_request(w, Slot{me}) || is_past_preempt_request(w, Slot{me});
}

// How many threads of this process may spin: one core stays free for the thread that they wait for.
std::uint32_t spinners_most() noexcept {
  static std::atomic<std::uint32_t> most{UINT32_MAX};
  if (const auto known = most.load(std::memory_order_relaxed); known != UINT32_MAX) return known;
  unsigned long set[1024 / 8 / sizeof(unsigned long)] = {};
  // The affinity of the first thread: others may have bound themselves.
  const long bytes = raw_syscall(SYS_sched_getaffinity, raw_syscall(SYS_getpid), sizeof set, set);
  int processors = 0;
  for (long i = 0; i < bytes / static_cast<long>(sizeof set[0]); ++i) {
    processors += std::popcount(set[i]);
  }
  const auto found = static_cast<std::uint32_t>(processors > 0 ? processors - 1 : 0);
  most.store(found, std::memory_order_relaxed);
  return found;
}

// Returns whether the turn came meanwhile.
bool spin_for_turn(const Layout& w, std::uint16_t me, Until until) noexcept {
  const std::uint32_t most = w.header.configuration.spin;
  if (most == 0) return false;
  const std::uint32_t budget = spin_budget.next(most);
  if (budget == 0) return false;
  bool granted = false;
  if (spinners.fetch_add(1, std::memory_order_relaxed) < spinners_most()) {
    for (std::uint32_t i = 0; i < budget && !granted; ++i) {
      granted = can_continue(w, me, until);
      if (!granted) __builtin_ia32_pause();
    }
    granted ? spin_budget.helped() : spin_budget.failed();
  }
  spinners.fetch_sub(1, std::memory_order_relaxed);
  return granted;
}

void sleep_physically(long ns) noexcept {
  const timespec duration{0, ns};
  (void)raw_syscall(SYS_nanosleep, &duration, nullptr);
}

}  // namespace

void set_restore_handler(RestoreHandler handler) noexcept { restore_handler.store(handler); }

void look_for_restore(const Layout& w) noexcept {
  const std::uint32_t restores = w.scheduler.restores.load(std::memory_order_relaxed);
  if (restores == restores_seen) return;
  restores_seen = restores;
  if (const RestoreHandler handler = restore_handler.load()) handler(restores);
}

void perturb(const Layout& w) noexcept {
  const Configuration& c = w.header.configuration;
  if (c.perturb_seed == 0) return;
  if (perturb_state == 0) {
    perturb_state = c.perturb_seed ^ (static_cast<std::uint64_t>(raw_syscall(SYS_gettid)) << 20);
  }
  const std::uint64_t draw = next_random();
  if (draw % kPerturbPeriod != 0 || c.perturb_max_us == 0) return;
  sleep_physically(static_cast<long>((draw >> 16) % c.perturb_max_us) * 1000);
}

void await_turn(Layout& w, std::uint16_t me, Until until) noexcept {
  SlotRecord& s = w.slots[me];
  if (spin_for_turn(w, me, until)) return;
  // Dekker with pass_turn and wake_holder: either this thread sees the turn, or they see that it
  // sleeps.
  for (;;) {
    s.parked.store(1, std::memory_order_seq_cst);
    if (can_continue(w, me, until)) break;
    futex_wait(&s.parked, 1);
  }
  s.parked.store(0, std::memory_order_relaxed);
  if (w.scheduler.fenced.load(std::memory_order_relaxed) != 0) stop_here(w);
  look_for_restore(w);
}

void forget_spinners() noexcept { spinners.store(0, std::memory_order_relaxed); }

void pass_turn(Layout& w, std::uint16_t to) noexcept {
  SchedulerState& s = w.scheduler;
  CRANE_ASSERT(w.slots[to].state == SlotState::kRunnable);
  s.published_clock.store(s.clock, std::memory_order_relaxed);
  s.holder.store(to, std::memory_order_seq_cst);
  wake_parked(w.slots[to]);
}

}  // namespace crane::dmt
