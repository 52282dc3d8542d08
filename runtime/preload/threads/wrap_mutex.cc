// SPDX-License-Identifier: Apache-2.0
// Mutexes, read-write locks and spin locks. The object is libc's, and its try function takes it at
// a turn. A thread that must wait does so in the scheduler (PARROT; DESIGN D1).
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/turn/blocking.h"

namespace crane::wrap {
namespace {

constexpr int kKindMask = 3, kRecursive = 1, kErrorCheck = 2;
constexpr int kSharedBit = 128;

std::uint64_t object_of_mutex(const pthread_mutex_t* m) noexcept {
  return object_of(m, (m->__data.__kind & kSharedBit) != 0);
}
std::uint64_t object_of_lock(const pthread_rwlock_t* l) noexcept {
  return object_of(l, l->__data.__shared != 0);
}

int try_lock(pthread_mutex_t* m) noexcept {
  const bool is_owner = m->__data.__owner == static_cast<int>(self.thread_id);
  if (!is_owner && is_reserved_for_another(object_of_mutex(m))) return EBUSY;
  return real::pthread_mutex_trylock(m);
}

// trylock returns EBUSY where lock returns EDEADLK (trap 5).
int attempt(dmt::Layout& w, pthread_mutex_t* m) noexcept {
  const int error = try_lock(m);
  if (error == ENOTRECOVERABLE) {
    // libc's trylock keeps the word of a mutex that is not recoverable; its lock releases the word.
    m->__data.__lock = 0;
    dmt::signal(w, object_of_mutex(m), dmt::kAll);
  }
  if (error != EBUSY) return error;
  const bool checks = (m->__data.__kind & kKindMask) == kErrorCheck;
  const bool is_owner = m->__data.__owner == static_cast<int>(self.thread_id);
  return checks && is_owner ? EDEADLK : EBUSY;
}

// The number of waiting writers, in a word of the lock that libc does not use. In the kind that
// prefers writers, they keep new readers out.
unsigned& waiting_writers(pthread_rwlock_t* l) noexcept { return l->__data.__pad3; }

int try_read(pthread_rwlock_t* l) noexcept {
  const bool prefers_writers = l->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
  if (prefers_writers && waiting_writers(l) > 0) return EBUSY;
  return real::pthread_rwlock_tryrdlock(l);
}

int attempt_read(pthread_rwlock_t* l) noexcept {
  const int error = try_read(l);
  const bool is_owner = l->__data.__cur_writer == static_cast<int>(self.thread_id);
  return error == EBUSY && is_owner ? EDEADLK : error;
}
int attempt_write(pthread_rwlock_t* l) noexcept {
  const int error = real::pthread_rwlock_trywrlock(l);
  const bool is_owner = l->__data.__cur_writer == static_cast<int>(self.thread_id);
  return error == EBUSY && is_owner ? EDEADLK : error;
}

// Counts a waiting writer of the lock during the lifetime of this object.
class WaitingWriter {
 public:
  WaitingWriter(Turn& turn, pthread_rwlock_t* l) noexcept : turn_(turn), lock_(l) {
    ++waiting_writers(l);
  }
  ~WaitingWriter() {
    --waiting_writers(lock_);
    // It gave up: readers that waited only for this writer may continue.
    if (failed_) dmt::signal(turn_.w, object_of_lock(lock_), dmt::kAll);
  }
  WaitingWriter(const WaitingWriter&) = delete;
  WaitingWriter& operator=(const WaitingWriter&) = delete;
  int result(int error) noexcept {
    failed_ = error != 0;
    return error;
  }

 private:
  Turn& turn_;
  pthread_rwlock_t* lock_;
  bool failed_ = false;
};

void locked(int error) noexcept {
  if (error == 0 || error == EOWNERDEAD) ++self.locks;
}

}  // namespace

int pthread_mutex_lock(pthread_mutex_t* m) {
  Turn turn(Op::pthread_mutex_lock);
  const int error = until_free(turn, object_of_mutex(m), [&turn, m] { return attempt(turn.w, m); });
  locked(error);
  turn.result(error);
  return error;
}

int pthread_mutex_trylock(pthread_mutex_t* m) {
  Turn turn(Op::pthread_mutex_trylock);
  const int error = try_lock(m);
  locked(error);
  if (error == EBUSY) turn.yield();
  turn.about(object_of_mutex(m));
  turn.result(error);
  return error;
}

int pthread_mutex_unlock(pthread_mutex_t* m) {
  Turn turn(Op::pthread_mutex_unlock);
  const std::uint64_t object = object_of_mutex(m);
  const bool recursive = (m->__data.__kind & kKindMask) == kRecursive;
  const bool still_held = recursive && m->__data.__count > 1;
  const int error = real::pthread_mutex_unlock(m);
  if (error == 0) {
    if (self.locks > 0) --self.locks;
    const std::uint32_t woken =
        still_held ? 0 : dmt::signal(turn.w, object, waiters_to_wake(object));
    if (self.locks == 0) {
      yield_to_others(turn);
      yield_if_none_woken(turn, woken);
    }
  }
  turn.result(error);
  return error;
}

int pthread_mutex_timedlock(pthread_mutex_t* m, const struct timespec* t) {
  Turn turn(Op::pthread_mutex_timedlock);
  const int error = until_free_or(turn, object_of_mutex(m), CLOCK_REALTIME, t,
                                  [&turn, m] { return attempt(turn.w, m); });
  locked(error);
  turn.result(error);
  return error;
}

int pthread_mutex_clocklock(pthread_mutex_t* m, clockid_t c, const struct timespec* t) {
  Turn turn(Op::pthread_mutex_clocklock);
  const int error =
      until_free_or(turn, object_of_mutex(m), c, t, [&turn, m] { return attempt(turn.w, m); });
  locked(error);
  turn.result(error);
  return error;
}

int pthread_mutex_consistent(pthread_mutex_t* m) {
  Turn turn(Op::pthread_mutex_consistent);
  const int error = real::pthread_mutex_consistent(m);
  turn.result(error);
  return error;
}

// --- read-write locks ----------------------------------------------------------------------------

int pthread_rwlock_rdlock(pthread_rwlock_t* l) {
  Turn turn(Op::pthread_rwlock_rdlock);
  const int error = until_free(turn, object_of_lock(l), [l] { return attempt_read(l); });
  turn.result(error);
  return error;
}

int pthread_rwlock_wrlock(pthread_rwlock_t* l) {
  Turn turn(Op::pthread_rwlock_wrlock);
  WaitingWriter writer(turn, l);
  const int error =
      writer.result(until_free(turn, object_of_lock(l), [l] { return attempt_write(l); }));
  turn.result(error);
  return error;
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t* l) {
  Turn turn(Op::pthread_rwlock_tryrdlock);
  const int error = try_read(l);
  if (error == EBUSY) turn.yield();
  turn.result(error);
  return error;
}

int pthread_rwlock_trywrlock(pthread_rwlock_t* l) {
  Turn turn(Op::pthread_rwlock_trywrlock);
  const int error = real::pthread_rwlock_trywrlock(l);
  if (error == EBUSY) turn.yield();
  turn.result(error);
  return error;
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t* l, clockid_t c, const struct timespec* t) {
  if (!is_futex_clock(c) || !is_valid(*t)) return EINVAL;  // as libc, also for a free lock
  Turn turn(Op::pthread_rwlock_clockrdlock);
  const int error = until_free_or(turn, object_of_lock(l), c, t, [l] { return attempt_read(l); });
  turn.result(error);
  return error;
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t* l, clockid_t c, const struct timespec* t) {
  if (!is_futex_clock(c) || !is_valid(*t)) return EINVAL;
  Turn turn(Op::pthread_rwlock_clockwrlock);
  WaitingWriter writer(turn, l);
  const int error =
      writer.result(until_free_or(turn, object_of_lock(l), c, t, [l] { return attempt_write(l); }));
  turn.result(error);
  return error;
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t* l, const struct timespec* t) {
  return wrap::pthread_rwlock_clockrdlock(l, CLOCK_REALTIME, t);
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t* l, const struct timespec* t) {
  return wrap::pthread_rwlock_clockwrlock(l, CLOCK_REALTIME, t);
}

int pthread_rwlock_unlock(pthread_rwlock_t* l) {
  Turn turn(Op::pthread_rwlock_unlock);
  const std::uint64_t object = object_of_lock(l);
  const int error = real::pthread_rwlock_unlock(l);
  // Wakes all waiters, because several readers may take the lock at once (trap 8).
  if (error == 0) dmt::signal(turn.w, object, dmt::kAll);
  turn.result(error);
  return error;
}

// --- spin locks: as mutexes, because a spinning thread would never give up the turn (trap 4) -----

namespace {
// A spin lock does not record whether it is shared, so its address decides.
std::uint64_t object_of_spin_lock(pthread_spinlock_t* l) noexcept {
  return object_of(l, touches_mapping(const_cast<const int*>(l), sizeof *l));
}
}  // namespace

int pthread_spin_lock(pthread_spinlock_t* l) {
  Turn turn(Op::pthread_spin_lock);
  const int error =
      until_free(turn, object_of_spin_lock(l), [l] { return real::pthread_spin_trylock(l); });
  turn.result(error);
  return error;
}

int pthread_spin_trylock(pthread_spinlock_t* l) {
  Turn turn(Op::pthread_spin_trylock);
  const int error = real::pthread_spin_trylock(l);
  if (error == EBUSY) turn.yield();
  turn.result(error);
  return error;
}

int pthread_spin_unlock(pthread_spinlock_t* l) {
  Turn turn(Op::pthread_spin_unlock);
  const int error = real::pthread_spin_unlock(l);
  dmt::signal(turn.w, object_of_spin_lock(l), 1);
  return error;
}

// --- C11 -----------------------------------------------------------------------------------------

namespace {
int c11_result(int error) noexcept {
  switch (error) {
    case 0:
      return thrd_success;
    case EBUSY:
      return thrd_busy;
    case ETIMEDOUT:
      return thrd_timedout;
    case ENOMEM:
      return thrd_nomem;
    default:
      return thrd_error;
  }
}
// glibc's mtx_t and cnd_t are its pthread objects.
pthread_mutex_t* mutex(mtx_t* m) noexcept { return reinterpret_cast<pthread_mutex_t*>(m); }
pthread_cond_t* condition(cnd_t* c) noexcept { return reinterpret_cast<pthread_cond_t*>(c); }
}  // namespace

int mtx_lock(mtx_t* m) { return c11_result(wrap::pthread_mutex_lock(mutex(m))); }
int mtx_trylock(mtx_t* m) { return c11_result(wrap::pthread_mutex_trylock(mutex(m))); }
int mtx_unlock(mtx_t* m) { return c11_result(wrap::pthread_mutex_unlock(mutex(m))); }
int mtx_timedlock(mtx_t* m, const struct timespec* t) {
  return c11_result(wrap::pthread_mutex_timedlock(mutex(m), t));
}
int cnd_wait(cnd_t* c, mtx_t* m) {
  return c11_result(wrap::pthread_cond_wait(condition(c), mutex(m)));
}
int cnd_timedwait(cnd_t* c, mtx_t* m, const struct timespec* t) {
  return c11_result(wrap::pthread_cond_timedwait(condition(c), mutex(m), t));
}
int cnd_signal(cnd_t* c) { return c11_result(wrap::pthread_cond_signal(condition(c))); }
int cnd_broadcast(cnd_t* c) { return c11_result(wrap::pthread_cond_broadcast(condition(c))); }
void cnd_destroy(cnd_t* c) { wrap::pthread_cond_destroy(condition(c)); }

}  // namespace crane::wrap
