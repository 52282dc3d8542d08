// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/turn/branch_counter.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include "dmt/admission.h"
#include "dmt/base/branch_event.h"
#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "runtime/preload/self/own_descriptors.h"
#include "runtime/preload/self/thread.h"

namespace crane::branches {
namespace {

constexpr int kSetOwnerEx = 15, kSetSignal = 10;  // F_SETOWN_EX, F_SETSIG

std::uint32_t event = 0;
std::uint64_t skid_max = 0, seed = 0;  // of the simulated counter

bool is_simulated() noexcept { return event == kSimulatedEvent || event == kSteppedEvent; }

// --- the processor's counter ---------------------------------------------------------------------

std::uint64_t read_counter() noexcept {
  std::uint64_t count = 0;
  raw_syscall(SYS_read, self.branches.fd, &count, sizeof count);
  return count;
}

[[noreturn]] void refuse(const char* what, long error) noexcept {
  { Message() << "no branch counter: " << what << ": error " << -error; }
  dmt::fence(without_turn(), "the branch counter of a thread cannot be used");
}

// Opens the counter in the range of our own descriptors, which the program can neither see nor
// close.
void open_counter(std::uint64_t period) noexcept {
  const long fd = open_branch_counter(event, period);
  if (fd < 0) refuse("perf_event_open", fd);
  const int first = own_descriptor_base() + kOwnDescriptors;
  const long moved = raw_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, first);
  raw_syscall(SYS_close, fd);
  if (moved < 0 || !is_own_descriptor(static_cast<int>(moved))) refuse("no descriptor", moved);
  const struct {
    int type;  // F_OWNER_TID
    pid_t id;
  } owner{0, static_cast<pid_t>(self.thread_id)};
  long error = raw_syscall(SYS_fcntl, moved, kSetOwnerEx, &owner);
  if (error >= 0) error = raw_syscall(SYS_fcntl, moved, kSetSignal, kInterruptSignal);
  if (error >= 0) error = raw_syscall(SYS_fcntl, moved, F_SETFL, O_ASYNC | O_NONBLOCK);
  if (error < 0) refuse("its signal", error);
  self.branches.fd = static_cast<int>(moved);
}

// --- the simulated counter -----------------------------------------------------------------------

SimulatedBranches& own_entry() noexcept {
  auto* all = reinterpret_cast<SimulatedBranches*>(kSimulatedAt);
  const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  return all[(thread >> 12) % kSimulatedMax];
}

thread_local constinit std::uint64_t spent = 0;
std::uint64_t read_simulated() noexcept { return own_entry().count + spent; }

// Returns another number below `most` at each call.
std::uint64_t random_below(std::uint64_t most) noexcept {
  if (seed == 0) return 0;
  seed = seed * 6364136223846793005 + 1442695040888963407;
  return most == 0 ? 0 : (seed >> 33) % most;
}

void map_simulated() noexcept {
  raw_syscall(SYS_mmap, kSimulatedAt, sizeof(SimulatedBranches) * kSimulatedMax,
              PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

}  // namespace

std::uint64_t (*read)() noexcept = read_counter;

void choose_counter(const dmt::Configuration& configuration, std::uint64_t margin) noexcept {
  event = configuration.branch_event;
  if (!is_simulated()) return;
  skid_max = margin;
  seed = configuration.perturb_seed;
  read = read_simulated;
  map_simulated();
}

void open(std::uint64_t period) noexcept {
  close();
  if (!is_simulated()) return open_counter(period);
  SimulatedBranches& own = own_entry();
  own.thread = self.thread_id;
  if (own.count == 0) own.count = 1;
  self.branches.fd = 0;
  interrupt_in(period);
}

void close() noexcept {
  if (self.branches.fd < 0) return;
  if (is_simulated()) {
    own_entry().thread = 0;
  } else {
    raw_syscall(SYS_close, self.branches.fd);
  }
  self.branches.fd = -1;
}

void interrupt_in(std::uint64_t branches) noexcept {
  if (is_simulated()) {
    own_entry().gate = own_entry().count + branches + random_below(skid_max);
    return;
  }
  const long error = raw_syscall(SYS_ioctl, self.branches.fd, PERF_EVENT_IOC_PERIOD, &branches);
  if (error < 0) refuse("its period", error);
}

void spend() noexcept {
  constexpr std::uint64_t kMost = 1000;
  if (is_simulated()) spent += random_below(kMost);
}

}  // namespace crane::branches
