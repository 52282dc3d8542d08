// SPDX-License-Identifier: Apache-2.0
// syscall(2) by number, and the atomics of the Apache runtime: what programs use to synchronise
// without pthreads (rules 10 and 12).
#include <linux/futex.h>

#include "dmt/base/log.h"
#include "runtime/blocking.h"
#include "runtime/fork.h"
#include "runtime/inside.h"
#include "runtime/real.h"
#include "runtime/wrappers.h"

namespace crane {
namespace {

long fail(int error) noexcept {
  errno = error;
  return -1;
}

std::uint64_t object_of_futex(long address, int operation) noexcept {
  const bool is_private = (operation & FUTEX_PRIVATE_FLAG) != 0;
  return object_of(reinterpret_cast<const void*>(address), !is_private);
}

std::uint32_t load(long address) noexcept {
  return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(address), __ATOMIC_SEQ_CST);
}

long futex_wait_virtually(const long* a) noexcept {
  const int operation = static_cast<int>(a[1]);
  const auto* time = reinterpret_cast<const struct timespec*>(a[3]);
  Turn turn(Op::syscall);
  std::int64_t deadline = dmt::kNoDeadline;
  if (time != nullptr) {
    if (!is_valid(*time)) return fail(EINVAL);
    const bool absolute = (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
    const bool wall = (operation & FUTEX_CLOCK_REALTIME) != 0;
    deadline = absolute ? deadline_at(turn.w, wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, *time)
                        : deadline_after(turn.w, to_ns(*time));
  }
  if (load(a[0]) != static_cast<std::uint32_t>(a[2])) {
    turn.yield();  // the caller looks again: let the others make progress
    turn.result(EAGAIN);
    return fail(EAGAIN);
  }
  switch (turn.wait(object_of_futex(a[0], operation), deadline)) {
    case dmt::WakeReason::kSignalled:
      return 0;
    case dmt::WakeReason::kTimeout:
      return fail(ETIMEDOUT);
    case dmt::WakeReason::kInterrupted:
      (void)turn.interrupted(kRestarts);
      return fail(EINTR);
  }
  return 0;
}

long futex_wake_virtually(const long* a, std::uint32_t count) noexcept {
  Turn turn(Op::syscall);
  const std::uint32_t woken =
      dmt::signal(turn.w, object_of_futex(a[0], static_cast<int>(a[1])), count);
  turn.result(static_cast<std::uint64_t>(woken));
  if (woken > 0) let_others_go(turn);
  return woken;
}

long futex(const long* a) noexcept {
  switch (static_cast<int>(a[1]) & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      return futex_wait_virtually(a);
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
      return futex_wake_virtually(a, static_cast<std::uint32_t>(a[2]));
    case FUTEX_CMP_REQUEUE:
      if (load(a[0]) != static_cast<std::uint32_t>(a[5])) return fail(EAGAIN);
      [[fallthrough]];
    case FUTEX_REQUEUE:
      // Who would be requeued looks again: a spurious wake-up, which futexes may have.
      return futex_wake_virtually(a, dmt::kAll);
    default:
      Message() << "futex operation " << a[1] << " is not supported";
      return fail(ENOSYS);
  }
}

template <typename T>
T as(long word) noexcept {
  return reinterpret_cast<T>(word);
}

long refused(long n, const char* what) noexcept {
  Message() << "system call " << n << " (" << what << ") is not supported";
  return fail(ENOSYS);
}

// Numbers that change or await what the schedule knows; false: not one of them.
bool is_answered(long n, const long* a, long& result) noexcept {
  switch (n) {
    case SYS_futex:
      result = futex(a);
      return true;
    case SYS_getrandom:
      result =
          wrap::getrandom(as<void*>(a[0]), static_cast<size_t>(a[1]), static_cast<unsigned>(a[2]));
      return true;
    case SYS_clock_gettime:
      result = wrap::clock_gettime(static_cast<clockid_t>(a[0]), as<struct timespec*>(a[1]));
      return true;
    case SYS_gettimeofday:
      result = wrap::gettimeofday(as<struct timeval*>(a[0]), as<void*>(a[1]));
      return true;
    case SYS_time:
      result = wrap::time(as<time_t*>(a[0]));
      return true;
    case SYS_nanosleep:
      result = wrap::nanosleep(as<const struct timespec*>(a[0]), as<struct timespec*>(a[1]));
      return true;
    case SYS_sched_yield:
      result = wrap::sched_yield();
      return true;
    case SYS_kill:
      result = wrap::kill(static_cast<pid_t>(a[0]), static_cast<int>(a[1]));
      return true;
    case SYS_tgkill:
      result =
          wrap::tgkill(static_cast<pid_t>(a[0]), static_cast<pid_t>(a[1]), static_cast<int>(a[2]));
      return true;
    case SYS_execve:
      result = wrap::execve(as<const char*>(a[0]), as<char* const*>(a[1]), as<char* const*>(a[2]));
      return true;
    case SYS_fork:
    case SYS_vfork:
      result = scheduled_fork();
      return true;
    case SYS_exit_group:
      end_now(status_of_exit(static_cast<int>(a[0])));
    default:
      return false;
  }
}

}  // namespace

namespace wrap {

long syscall(long n, const long* a) {
  long result = 0;
  if (is_answered(n, a, result)) return result;
  switch (n) {
    case SYS_clone:
    case SYS_clone3:
      return refused(n, "clone");
    case SYS_io_uring_setup:
      return fail(ENOSYS);  // as a kernel without it: programs fall back
    case SYS_close: {
      OutsideCrane outside;
      return ::close(static_cast<int>(a[0]));
    }
    case SYS_read: {
      OutsideCrane outside;
      return ::read(static_cast<int>(a[0]), as<void*>(a[1]), static_cast<size_t>(a[2]));
    }
    case SYS_write: {
      OutsideCrane outside;
      return ::write(static_cast<int>(a[0]), as<const void*>(a[1]), static_cast<size_t>(a[2]));
    }
    default:
      return real::syscall(n, a[0], a[1], a[2], a[3], a[4], a[5]);
  }
}

// --- libapr's atomics  ---------------------------------------------------------------------------

namespace {

// In serial mode only one thread runs and the operation is atomic as it is; in parallel mode its
// place in the schedule decides what it sees.
template <typename Operation>
auto atomically(Op op, Operation operation) noexcept {
  if (InsideCrane::inside() || !is_parallel()) return operation();
  InsideCrane inside;
  Turn turn(op);
  return operation();
}

template <typename T>
T compare_and_swap(volatile T* m, T with, T expected) noexcept {
  __atomic_compare_exchange_n(m, &expected, with, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}

void* swap_pointer(void* volatile* m, void* with, const void* expected) noexcept {
  void* seen = const_cast<void*>(expected);
  __atomic_compare_exchange_n(m, &seen, with, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return seen;
}

}  // namespace

#define CRANE_ATOMICS(bits, type)                                                              \
  type apr_atomic_read##bits(volatile type* m) {                                               \
    return atomically(Op::apr_atomic_read##bits,                                               \
                      [=] { return __atomic_load_n(m, __ATOMIC_SEQ_CST); });                   \
  }                                                                                            \
  void apr_atomic_set##bits(volatile type* m, type v) {                                        \
    atomically(Op::apr_atomic_set##bits, [=] { __atomic_store_n(m, v, __ATOMIC_SEQ_CST); });   \
  }                                                                                            \
  type apr_atomic_add##bits(volatile type* m, type v) {                                        \
    return atomically(Op::apr_atomic_add##bits,                                                \
                      [=] { return __atomic_fetch_add(m, v, __ATOMIC_SEQ_CST); });             \
  }                                                                                            \
  void apr_atomic_sub##bits(volatile type* m, type v) {                                        \
    atomically(Op::apr_atomic_sub##bits, [=] { __atomic_fetch_sub(m, v, __ATOMIC_SEQ_CST); }); \
  }                                                                                            \
  type apr_atomic_inc##bits(volatile type* m) {                                                \
    return atomically(Op::apr_atomic_inc##bits,                                                \
                      [=] { return __atomic_fetch_add(m, type{1}, __ATOMIC_SEQ_CST); });       \
  }                                                                                            \
  int apr_atomic_dec##bits(volatile type* m) {                                                 \
    return atomically(Op::apr_atomic_dec##bits, [=] {                                          \
      return __atomic_sub_fetch(m, type{1}, __ATOMIC_SEQ_CST) != 0 ? 1 : 0;                    \
    });                                                                                        \
  }                                                                                            \
  type apr_atomic_cas##bits(volatile type* m, type v, type e) {                                \
    return atomically(Op::apr_atomic_cas##bits, [=] { return compare_and_swap(m, v, e); });    \
  }                                                                                            \
  type apr_atomic_xchg##bits(volatile type* m, type v) {                                       \
    return atomically(Op::apr_atomic_xchg##bits,                                               \
                      [=] { return __atomic_exchange_n(m, v, __ATOMIC_SEQ_CST); });            \
  }

CRANE_ATOMICS(32, unsigned)
using Word64 = unsigned long;
CRANE_ATOMICS(64, Word64)
#undef CRANE_ATOMICS

void* apr_atomic_casptr(void* volatile* m, void* v, const void* e) {
  return atomically(Op::apr_atomic_casptr, [=] { return swap_pointer(m, v, e); });
}
void* apr_atomic_casptr2(void* volatile* m, void* v, const void* e) {
  return atomically(Op::apr_atomic_casptr2, [=] { return swap_pointer(m, v, e); });
}
void* apr_atomic_xchgptr(void* volatile* m, void* v) {
  return atomically(Op::apr_atomic_xchgptr,
                    [=] { return __atomic_exchange_n(m, v, __ATOMIC_SEQ_CST); });
}
void* apr_atomic_xchgptr2(void* volatile* m, void* v) {
  return atomically(Op::apr_atomic_xchgptr2,
                    [=] { return __atomic_exchange_n(m, v, __ATOMIC_SEQ_CST); });
}

}  // namespace wrap
}  // namespace crane
