// SPDX-License-Identifier: Apache-2.0
// Semaphores. The object is libc's, and sem_trywait takes it at a turn. A thread that must wait
// does so in the scheduler.
#include "dmt/base/valgrind.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/turn/blocking.h"

namespace crane::wrap {
namespace {

// glibc's layout: a 64-bit value and waiter count, then the futex flag of process-shared ones.
struct SemaphoreLayout {
  std::uint64_t data;
  int shared;
};

std::uint64_t object_of_semaphore(const sem_t* s) noexcept {
  return object_of(s, reinterpret_cast<const SemaphoreLayout*>(s)->shared != 0);
}

// Returns 0 or an error number; EAGAIN: the caller must wait.
int attempt(sem_t* s) noexcept {
  const int saved = errno;
  const int result = real::sem_trywait(s);
  const int error = result == 0 ? 0 : errno;
  errno = saved;
  if (error == 0) order_in_valgrind(object_of_semaphore(s));
  return error;
}

int answer(Turn& turn, int error) noexcept {
  turn.result(error);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

int wait_until(Turn& turn, sem_t* s, clockid_t clock, const struct timespec* time) noexcept {
  std::int64_t deadline = dmt::kNoDeadline;
  if (time != nullptr) {
    // As in glibc, checked even when the call would not block.
    if (!is_futex_clock(clock) || !is_valid(*time)) return answer(turn, EINVAL);
    deadline = deadline_at(turn.w, clock, *time);
  }
  int error = attempt(s);
  while (error == EAGAIN) {
    const dmt::WakeReason why = turn.wait(object_of_semaphore(s), deadline);
    if (why == dmt::WakeReason::kTimeout) return answer(turn, ETIMEDOUT);
    // As the kernel's futex: with a time-out, any handler ends the wait.
    const bool restarts = time == nullptr;
    if (why == dmt::WakeReason::kInterrupted && !turn.interrupted(restarts)) {
      return answer(turn, EINTR);
    }
    error = attempt(s);
  }
  return answer(turn, error);
}

}  // namespace

int sem_wait(sem_t* s) {
  Turn turn(Op::sem_wait, Turn::kCancellationPoint);
  return wait_until(turn, s, CLOCK_MONOTONIC, nullptr);
}

int sem_timedwait(sem_t* s, const struct timespec* t) {
  Turn turn(Op::sem_timedwait, Turn::kCancellationPoint);
  return wait_until(turn, s, CLOCK_REALTIME, t);
}

int sem_clockwait(sem_t* s, clockid_t c, const struct timespec* t) {
  Turn turn(Op::sem_clockwait, Turn::kCancellationPoint);
  return wait_until(turn, s, c, t);
}

int sem_trywait(sem_t* s) {
  Turn turn(Op::sem_trywait);
  const int error = attempt(s);
  if (error == EAGAIN) turn.yield();
  return answer(turn, error);
}

int sem_post(sem_t* s) {
  Turn turn(Op::sem_post);
  const int result = real::sem_post(s);
  if (result == 0 && dmt::signal(turn.w, object_of_semaphore(s), 1) > 0) yield_to_others(turn);
  turn.result(result);
  return result;
}

int sem_getvalue(sem_t* s, int* v) {
  Turn turn(Op::sem_getvalue);
  const int result = real::sem_getvalue(s, v);
  turn.result(static_cast<std::int64_t>(*v));
  return result;
}

}  // namespace crane::wrap
