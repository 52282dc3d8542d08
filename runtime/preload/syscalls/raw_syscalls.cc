// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/syscalls/raw_syscalls.h"
#include "runtime/preload/ground/user_memory.h"

#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "dmt/base/raw.h"
#include "runtime/preload/files/open.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/processes/fork.h"
#include "runtime/preload/self/own_arguments.h"
#include "runtime/preload/self/thread.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/threads/futex.h"
#include "runtime/preload/threads/scheduling.h"
#include "runtime/preload/trap/sandbox.h"
#include "runtime/preload/turn/turn.h"

namespace crane {
namespace {

template <typename T>
T as(long word) noexcept {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(word);
  } else {
    return static_cast<T>(word);
  }
}

long or_error(long result) noexcept { return result == -1 ? -errno : result; }

// --- calls with other parameters than their function in libc -------------------------------------

long sleep_by_clock(const long* a) noexcept {
  return -wrap::clock_nanosleep(as<clockid_t>(a[0]), as<int>(a[1]), as<struct timespec*>(a[2]),
                                as<struct timespec*>(a[3]));
}

long get_processor(const long* a) noexcept {
  for (const long word : {a[0], a[1]}) {
    if (word != 0) *as<unsigned*>(word) = static_cast<unsigned>(wrap::sched_getcpu());
  }
  return 0;
}

// The offset has two words; x86-64 uses the first.
long read_at(const long* a) noexcept {
  return or_error(wrap::preadv2(as<int>(a[0]), as<const struct iovec*>(a[1]), as<int>(a[2]), a[3],
                                as<int>(a[5])));
}
long write_at(const long* a) noexcept {
  return or_error(wrap::pwritev2(as<int>(a[0]), as<const struct iovec*>(a[1]), as<int>(a[2]), a[3],
                                 as<int>(a[5])));
}

// The kernel returns how much of the mask it wrote.
long get_affinity(const long* a) noexcept {
  constexpr long kBytes = sizeof(unsigned long);
  const int error = wrap::sched_getaffinity(as<pid_t>(a[0]), kBytes, as<cpu_set_t*>(a[2]));
  return a[1] < kBytes ? -EINVAL : error == 0 ? kBytes : -errno;
}

long fork_by_number(const long*) noexcept { return or_error(scheduled_fork()); }
long vfork_as_call(const long*) noexcept { return or_error(vfork_by_number()); }

// Acts as fork when the call shares nothing and names no stack; other calls fail.
long fork_by_clone(const long* a) noexcept {
  constexpr long kSignalBits = 0xff;
  if (sandbox::wants_namespace(a[0])) return sandbox::refuse_namespace("clone");
  if ((a[0] & ~kSignalBits) != 0 || a[1] != 0) return -ENOSYS;
  return or_error(scheduled_fork());
}

long end_thread_by_number(const long* a) noexcept {
  bool is_last;
  {
    Turn turn(Op::pthread_exit);
    is_last = turn.w.processes[self.process].slots == 1;
  }
  if (is_last) end_now(status_of_exit(as<int>(a[0])));
  wrap::pthread_exit(nullptr);
}

long end_process_by_number(const long* a) noexcept { end_now(status_of_exit(as<int>(a[0]))); }

long signal_thread(const long* a) noexcept {
  return or_error(
      wrap::tgkill(static_cast<pid_t>(raw_syscall(SYS_getpid)), as<pid_t>(a[0]), as<int>(a[1])));
}

long open_by_how(const long* a) noexcept {
  Turn turn(Op::openat, Turn::kCancellationPoint);
  const int result = open_how(turn, as<int>(a[0]), as<const char*>(a[1]), as<const void*>(a[2]),
                              static_cast<std::size_t>(a[3]));
  turn.result(result);
  return result;
}

long change_mode_at(const long* a) noexcept {
  return or_error(wrap::fchmodat(as<int>(a[0]), as<const char*>(a[1]), as<mode_t>(a[2]), 0));
}

long signal_file(const long* a) noexcept {
  return or_error(wrap::signalfd(as<int>(a[0]), as<const sigset_t*>(a[1]), as<int>(a[3])));
}

long event_file(const long* a) noexcept { return or_error(wrap::eventfd(as<unsigned>(a[0]), 0)); }

long select_by_number(const long* a) noexcept {
  struct Mask {
    const sigset_t* set;
    std::size_t size;
  };
  const sigset_t* mask = a[5] == 0 ? nullptr : as<const Mask*>(a[5])->set;
  return or_error(wrap::pselect(as<int>(a[0]), as<fd_set*>(a[1]), as<fd_set*>(a[2]),
                                as<fd_set*>(a[3]), as<const struct timespec*>(a[4]), mask));
}

// --- signals: the kernel's sets have 8 bytes, and its actions another order ----------------------

struct KernelAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

long set_action_by_number(const long* a) noexcept {
  struct sigaction wanted {};
  struct sigaction old {};
  if (const auto* given = as<const KernelAction*>(a[1]); given != nullptr) {
    wanted.sa_handler = given->handler;
    wanted.sa_flags = static_cast<int>(given->flags);
    wanted.sa_mask = set_of(given->mask);
  }
  if (wrap::sigaction(as<int>(a[0]), a[1] == 0 ? nullptr : &wanted, &old) != 0) return -errno;
  if (auto* out = as<KernelAction*>(a[2]); out != nullptr) {
    *out = {old.sa_handler, static_cast<unsigned long>(old.sa_flags), nullptr,
            bits_of(old.sa_mask)};
  }
  return 0;
}

long change_mask_by_number(const long* a) noexcept {
  sigset_t wanted{};
  sigset_t old{};
  if (a[1] != 0 && !is_readable(as<const void*>(a[1]), sizeof(std::uint64_t))) return -EFAULT;
  if (a[1] != 0) wanted = set_of(*as<const std::uint64_t*>(a[1]));
  if (wrap::sigprocmask(as<int>(a[0]), a[1] == 0 ? nullptr : &wanted, &old) != 0) return -errno;
  if (a[2] != 0) *as<std::uint64_t*>(a[2]) = bits_of(old);
  return 0;
}

long pending_by_number(const long* a) noexcept {
  sigset_t set{};
  wrap::sigpending(&set);
  *as<std::uint64_t*>(a[0]) = bits_of(set);
  return 0;
}

long sandbox_by_number(const long* a) noexcept {
  return sandbox::by_seccomp(a[0], a[1], as<const void*>(a[2]));
}

// --- the machine itself (MACHINE-1) --------------------------------------------------------------

// Fails as without the privilege.
long refuse_privilege(const long*) noexcept { return -EPERM; }
// Fails as when kernel.perf_event_paranoid is 2.
long refuse_access(const long*) noexcept { return -EACCES; }

// --- the table -----------------------------------------------------------------------------------

template <auto function>
struct Call;

template <typename R, typename... P, R (*function)(P...)>
struct Call<function> {
  static long by_words(const long* a) noexcept { return with(a, std::index_sequence_for<P...>{}); }

 private:
  template <std::size_t... i>
  static long with(const long* a, std::index_sequence<i...>) noexcept {
    (void)a;
    return or_error(raw_word(function(as<P>(a[i])...)));
  }
};

// A row of interposed.def that a system call's number selects, with the check for our own
// descriptors.
template <Op op, auto function>
long row_by_words(const long* a) noexcept {
  constexpr own::Arguments which = own::arguments_of(op);
  if constexpr (!which.none()) {
    if (own::is_named<which>(a)) return -EBADF;  // OWN-FD-1
  }
  return Call<function>::by_words(a);
}

constexpr std::size_t kNumbers = 512;

constexpr std::array<SystemCall, kNumbers> make_table() {
  std::array<SystemCall, kNumbers> t{};
#define OPERATION(call, function) \
  t[SYS_##call] = {#call, CallKind::kOperation, row_by_words<Op::function, &wrap::function>};
#define QUIET(call, function) \
  t[SYS_##call] = {#call, CallKind::kBounded, row_by_words<Op::function, &wrap::function>};
#define SPECIAL(call, function) t[SYS_##call] = {#call, CallKind::kOperation, function};
#define REFUSED(call) t[SYS_##call] = {#call, CallKind::kRefused, nullptr};
#define BOUNDED(call) t[SYS_##call] = {#call, CallKind::kBounded, nullptr};
#define PASSED(call) t[SYS_##call] = {#call, CallKind::kPassed, nullptr};
#include "runtime/preload/trap/system_calls.def"
  return t;
}

constexpr std::array<SystemCall, kNumbers> kTable = make_table();
constexpr SystemCall kUnknownCall{nullptr, CallKind::kPassed, nullptr};

}  // namespace

const SystemCall& system_call(long number) noexcept {
  const bool known = number >= 0 && number < static_cast<long>(kNumbers) &&
                     kTable[static_cast<std::size_t>(number)].name != nullptr;
  return known ? kTable[static_cast<std::size_t>(number)] : kUnknownCall;
}

}  // namespace crane
