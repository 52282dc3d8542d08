// SPDX-License-Identifier: Apache-2.0
// System V semaphores and message queues. The objects are the kernel's, but its calls do not block;
// a thread waits in the schedule (rule 3).
//
// Rules:
// * Any success may be what another thread waits for: all threads that wait for the object try
//   again, in the order in which they came.
// * The kernel never undoes anything (SEM_UNDO), because it would do so outside a turn
//   (semaphore_undo.h).
#include <algorithm>
#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "runtime/preload/descriptors/queue_wait.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/mapping.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/threads/semaphore_undo.h"
#include "runtime/preload/turn/blocking.h"

namespace crane::wrap {
namespace {

constexpr std::uint64_t kSemaphores = 0x73656d, kMessages = 0x6d7367;  // address spaces of names
constexpr std::size_t kOperationsMax = 500;                            // SEMOPM

std::uint64_t object_of_id(std::uint64_t kind, int id) noexcept {
  return name_of_address(kind, reinterpret_cast<const void*>(static_cast<std::intptr_t>(id)));
}

long finish(Turn& turn, long result, std::uint64_t object, bool wakes) noexcept {
  if (result >= 0 && wakes && dmt::signal(turn.w, object, dmt::kAll) > 0) yield_to_others(turn);
  turn.result(static_cast<std::int64_t>(result));
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// Whether the first operation that cannot be done now may wait. REQUIRES that one operation cannot
// be done.
bool first_waits(int id, const struct sembuf* ops, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    long now = raw_syscall(SYS_semctl, id, ops[i].sem_num, GETVAL);
    for (std::size_t j = 0; j < i; ++j) {
      if (ops[j].sem_num == ops[i].sem_num) now += ops[j].sem_op;
    }
    const bool blocks = ops[i].sem_op == 0 ? now != 0 : now + ops[i].sem_op < 0;
    if (blocks) return (ops[i].sem_flg & IPC_NOWAIT) == 0;
  }
  return true;
}

// --- SEM_UNDO ------------------------------------------------------------------------------------

bool is_undo_of(const dmt::SemaphoreUndo& u, int id, const struct sembuf& op) noexcept {
  return u.change != 0 && u.process == self.process && u.id == id && u.number == op.sem_num;
}

void note_undo(dmt::Layout& w, int id, const struct sembuf& done) noexcept {
  if ((done.sem_flg & SEM_UNDO) == 0 || done.sem_op == 0) return;
  dmt::SemaphoreUndo* place = nullptr;
  for (dmt::SemaphoreUndo& u : w.semaphore_undos) {
    const bool same = is_undo_of(u, id, done);
    if (same || (u.change == 0 && place == nullptr)) place = &u;
    if (same) break;
  }
  CRANE_ASSERT(place != nullptr);  // can_undo() was called before
  const int before = place->change;
  *place = {id, before - done.sem_op, done.sem_num, self.process};
}

// Whether the table has room for the undo entries that these operations add. An operation on an
// existing entry, such as the release of a semaphore, needs no room; otherwise a full table would
// stay full.
bool can_undo(const dmt::Layout& w, int id, const struct sembuf* ops, std::size_t n) noexcept {
  static constinit Bound bound{dmt::kSemaphoreUndosMax, "semaphores to undo, of all processes",
                               "semop with SEM_UNDO fails (ENOSPC)"};
  const auto adds = [&](const struct sembuf& op) {
    return (op.sem_flg & SEM_UNDO) != 0 && op.sem_op != 0 &&
           std::none_of(std::begin(w.semaphore_undos), std::end(w.semaphore_undos),
                        [&](const dmt::SemaphoreUndo& u) { return is_undo_of(u, id, op); });
  };
  const auto wanted = std::count_if(ops, ops + n, adds);
  if (wanted == 0) return true;
  const auto free = std::count_if(std::begin(w.semaphore_undos), std::end(w.semaphore_undos),
                                  [](const dmt::SemaphoreUndo& u) { return u.change == 0; });
  if (wanted > free) bound.count_refusal();
  return wanted <= free;
}

// Clears what all processes would add to a semaphore when its value is set.
void forget_undo(dmt::Layout& w, int id, int number) noexcept {
  for (dmt::SemaphoreUndo& u : w.semaphore_undos) {
    if (u.id == id && (number < 0 || u.number == number)) u.change = 0;
  }
}

void take_back(const dmt::SemaphoreUndo& u) noexcept {
  constexpr int kValueMax = 32767;  // SEMVMX
  const long now = raw_syscall(SYS_semctl, u.id, u.number, GETVAL);
  if (now < 0) return;
  const int wanted = std::clamp(static_cast<int>(now) + u.change, 0, kValueMax);
  const auto step = static_cast<short>(wanted - static_cast<int>(now));
  struct sembuf operation = {u.number, step, IPC_NOWAIT};
  if (step != 0) raw_syscall(SYS_semop, u.id, &operation, 1);
}

long operate(Op op, int id, const struct sembuf* ops, std::size_t n,
             const struct timespec* time) noexcept {
  Turn turn(op);
  const std::uint64_t object = object_of_id(kSemaphores, id);
  if (n == 0 || n > kOperationsMax) return finish(turn, n == 0 ? -EINVAL : -E2BIG, object, false);
  std::int64_t deadline = dmt::kNoDeadline;
  if (time != nullptr) {
    if (!is_positive(*time)) return finish(turn, -EINVAL, object, false);
    deadline = deadline_after(turn.w, to_ns(*time));
  }
  const Scratch<struct sembuf> now(n);
  std::memcpy(now.data(), ops, n * sizeof *ops);
  bool changes = false;
  for (std::size_t i = 0; i < n; ++i) {
    now[i].sem_flg = IPC_NOWAIT;
    changes = changes || ops[i].sem_op != 0;
  }
  // Checked at each attempt, because other threads may fill the table during the wait.
  const auto attempt = [&] {
    if (!can_undo(turn.w, id, ops, n)) return -long{ENOSPC};
    return raw_syscall(SYS_semtimedop, id, now.data(), n, nullptr);
  };
  long result = attempt();
  if (result == -EAGAIN && first_waits(id, ops, n)) {
    result = until_done(turn, object, {EAGAIN, EAGAIN, deadline}, attempt);
  }
  for (std::size_t i = 0; result >= 0 && i < n; ++i) note_undo(turn.w, id, ops[i]);
  return finish(turn, result, object, changes);
}

// System V: a signal handler always ends the wait.
QueueWait waits_for(int busy, int flags) noexcept {
  QueueWait wait{busy, 0, dmt::kNoDeadline};
  wait.may_wait = (flags & IPC_NOWAIT) == 0;
  return wait;
}

// The kernel numbers the objects that it creates. The numbers are equal on all replicas when all
// objects are created at turns. They depend on the container, so they are not folded.
template <typename Call>
int make_at_turn(Op op, Call call) noexcept {
  Turn turn(op);
  const int made = call();
  turn.result(made < 0 ? errno : 0);
  return made;
}

}  // namespace

int semget(key_t k, int n, int flags) {
  return make_at_turn(Op::semget, [=] { return real::semget(k, n, flags); });
}
int msgget(key_t k, int flags) {
  return make_at_turn(Op::msgget, [=] { return real::msgget(k, flags); });
}
int shmget(key_t k, size_t n, int flags) {
  return make_at_turn(Op::shmget, [=] { return real::shmget(k, n, flags); });
}

int semtimedop(int id, struct sembuf* ops, size_t n, const struct timespec* t) {
  return static_cast<int>(operate(Op::semtimedop, id, ops, n, t));
}

int semop(int id, struct sembuf* ops, size_t n) {
  return static_cast<int>(operate(Op::semop, id, ops, n, nullptr));
}

int semctl(int id, int number, int command, long argument) {
  Turn turn(Op::semctl);
  const long result = raw_syscall(SYS_semctl, id, number, command, argument);
  const bool wakes = command == SETVAL || command == SETALL || command == IPC_RMID;
  if (result >= 0 && wakes) forget_undo(turn.w, id, command == SETVAL ? number : -1);
  return static_cast<int>(finish(turn, result, object_of_id(kSemaphores, id), wakes));
}

int msgsnd(int id, const void* message, size_t n, int flags) {
  Turn turn(Op::msgsnd, Turn::kCancellationPoint);
  const std::uint64_t object = object_of_id(kMessages, id);
  const long result = until_done(turn, object, waits_for(EAGAIN, flags), [&] {
    return raw_syscall(SYS_msgsnd, id, message, n, flags | IPC_NOWAIT);
  });
  return static_cast<int>(finish(turn, result, object, true));
}

ssize_t msgrcv(int id, void* message, size_t n, long type, int flags) {
  Turn turn(Op::msgrcv, Turn::kCancellationPoint);
  const std::uint64_t object = object_of_id(kMessages, id);
  const long result = until_done(turn, object, waits_for(ENOMSG, flags), [&] {
    return raw_syscall(SYS_msgrcv, id, message, n, type, flags | IPC_NOWAIT);
  });
  return finish(turn, result, object, true);
}

int msgctl(int id, int command, struct msqid_ds* data) {
  Turn turn(Op::msgctl);
  const long result = raw_syscall(SYS_msgctl, id, command, data);
  const bool wakes = command == IPC_RMID || command == IPC_SET;
  return static_cast<int>(finish(turn, result, object_of_id(kMessages, id), wakes));
}

}  // namespace crane::wrap

namespace crane {

void end_semaphore_undo(dmt::Layout& w) noexcept {
  for (dmt::SemaphoreUndo& u : w.semaphore_undos) {
    if (u.change == 0 || u.process != self.process) continue;
    wrap::take_back(u);
    u.change = 0;
    dmt::signal(w, wrap::object_of_id(wrap::kSemaphores, u.id), dmt::kAll);
  }
}

}  // namespace crane
