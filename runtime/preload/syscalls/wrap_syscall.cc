// SPDX-License-Identifier: Apache-2.0
// syscall(2), and the atomics of the Apache runtime, by which programs synchronise without pthreads
// (rules 10 and 12).
#include <sched.h>
#include <sys/prctl.h>

#include "dmt/base/raw.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/processes/family.h"
#include "runtime/preload/syscalls/raw_syscalls.h"
#include "runtime/preload/trap/sandbox.h"
#include "runtime/preload/trap/seccomp_check.h"
#include "runtime/preload/trap/system_call_trap.h"
#include "runtime/preload/turn/turn.h"

namespace crane {
namespace wrap {

namespace {

long answer_by_number(long n, const long* a) noexcept {
  const SystemCall& call = system_call(n);
  if (call.operation != nullptr) return call.operation(a);
  if (call.kind == CallKind::kRefused) {
    count_by_number(n, dmt::Outcome::kRefused, self.caller);
    return -ENOSYS;
  }
  if (call.kind != CallKind::kBounded) count_by_number(n, dmt::Outcome::kPassed, self.caller);
  return raw_syscall6(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // namespace

long syscall(long n, const long* a) {
  long result = 0;
  if (!sandbox::is_answered(n, a, result)) result = answer_by_number(n, a);
  constexpr long kErrorsMax = 4095;
  if (result >= 0 || result < -kErrorsMax) return result;
  errno = static_cast<int>(-result);
  return -1;
}

int unshare(int flags) {
  // In clone's flags this bit belongs to the signal's number.
  const bool is_wanted = sandbox::wants_namespace(flags) || (flags & CLONE_NEWTIME) != 0;
  const long result =
      is_wanted ? sandbox::refuse_namespace("unshare") : raw_syscall(SYS_unshare, flags);
  return result < 0 ? fail(static_cast<int>(-result)) : 0;
}
int setns(int, int) { return fail(static_cast<int>(-sandbox::refuse_namespace("setns"))); }

namespace {

bool is_of_trap(int option) noexcept {
  return option == kSetDispatch || option == PR_SET_TSC || option == PR_GET_TSC;
}

// Refuses options that would disable the trap or the clock, as a kernel or processor without them.
long control_trap(int option, long argument) noexcept {
  if (option != PR_GET_TSC) return -EINVAL;
  if (argument == 0) return -EFAULT;
  *reinterpret_cast<int*>(argument) = PR_TSC_ENABLE;  // RDTSC works, by a fault
  return 0;
}

}  // namespace

int prctl(int option, long a, long b, long c, long d) {
  long result = 0;
  if (is_of_trap(option)) {
    result = control_trap(option, a);
  } else if (family::is_option(option)) {
    result = family::control(option, a);
  } else if (option == PR_SET_SECCOMP) {
    result = sandbox::set_by_prctl(a, reinterpret_cast<const void*>(b));
  } else if (option == PR_GET_SECCOMP) {
    result = sandbox::mode();
  } else {
    result = raw_syscall(SYS_prctl, option, a, b, c, d);
  }
  return result < 0 ? fail(static_cast<int>(-result)) : static_cast<int>(result);
}

// --- liburing and libaio, which make system calls directly ---------------------------------------

// These functions return the negative error number.
int io_uring_queue_init(unsigned, struct ::io_uring*, unsigned) { return -ENOSYS; }
int io_uring_queue_init_params(unsigned, struct ::io_uring*, struct ::io_uring_params*) {
  return -ENOSYS;
}
int io_uring_setup(unsigned, struct ::io_uring_params*) { return -ENOSYS; }
int io_setup(int, struct ::io_context**) { return -ENOSYS; }
int io_queue_init(int, struct ::io_context**) { return -ENOSYS; }

// --- libapr's atomics ----------------------------------------------------------------------------

namespace {

// In serial mode only one thread runs, so the operation is atomic. In parallel mode its place in
// the schedule decides what it sees.
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
