// SPDX-License-Identifier: Apache-2.0
// POSIX message queues. The queues are the kernel's, but its calls never block: with O_NONBLOCK the
// kernel's EAGAIN is returned, and other waits and time-outs are virtual. Which process is notified
// of a message in an empty queue (mq_notify) is recorded in the segment (dmt/message_notices.h),
// because the kernel would send the signal outside a turn.
#include <cstring>

#include "dmt/base/bound.h"
#include "dmt/base/raw.h"
#include "dmt/message_notices.h"
#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/descriptors/queue_wait.h"
#include "runtime/preload/ground/fortify.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/own_descriptors.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/threads/thread_life.h"
#include "runtime/preload/turn/blocking.h"

namespace crane::wrap {
namespace {

// A time-out in the past: the kernel does what it can do without waiting.
constexpr struct timespec kNow = {0, 0};

std::uint64_t object_of_queue(Turn& turn, mqd_t q) noexcept {
  return name_of_address(identity_of_file(turn, q), nullptr);
}

QueueWait waits_until(const Turn& turn, const struct timespec* at) noexcept {
  QueueWait wait{ETIMEDOUT, ETIMEDOUT, dmt::kNoDeadline};
  if (at != nullptr) wait.deadline_ns = deadline_at(turn.w, CLOCK_REALTIME, *at);
  wait.restarts = kRestarts;
  return wait;
}

bool is_empty(mqd_t q) noexcept {
  struct mq_attr now {};
  return raw_syscall(SYS_mq_getsetattr, q, nullptr, &now) == 0 && now.mq_curmsgs == 0;
}

// --- SIGEV_THREAD --------------------------------------------------------------------------------

// The function that the thread that waits for a notice will call.
struct Waiting {
  bool used;
  std::uint32_t notice;
  std::uint32_t generation;
  void (*function)(union sigval);
  union sigval value;
};
Waiting waiting[dmt::kMessageNoticesMax];

// The thread was started at the registration; it ends without a call when the registration is
// removed.
void* await_notice(void* argument) noexcept {
  Waiting own_wait;
  bool fired = false;
  {
    const InsideCrane inside;
    Turn turn(Op::mq_notify);
    own_wait = *static_cast<Waiting*>(argument);
    exchange_mask(turn.w, ~0ull);
    const std::uint64_t object = dmt::notice_object(own_wait.notice);
    while (dmt::is_registered(turn.w, own_wait.notice, own_wait.generation)) turn.wait(object);
    fired = dmt::has_fired(turn.w, own_wait.notice, own_wait.generation);
    static_cast<Waiting*>(argument)->used = false;
  }
  if (fired) own_wait.function(own_wait.value);
  return nullptr;
}

// Returns an error number.
int start_waiting(const struct sigevent& e, std::uint32_t notice,
                  std::uint32_t generation) noexcept {
  Waiting* place = nullptr;
  for (Waiting& w : waiting) {
    if (!w.used && place == nullptr) place = &w;
  }
  if (place == nullptr) {
    static constinit Bound bound{dmt::kMessageNoticesMax, "threads that wait for a notice",
                                 "mq_notify fails (ENOMEM)"};
    bound.count_refusal();
    return ENOMEM;
  }
  *place = {true, notice, generation, e.sigev_notify_function, e.sigev_value};
  pthread_attr_t attributes;
  if (e.sigev_notify_attributes != nullptr) {
    std::memcpy(&attributes, e.sigev_notify_attributes, sizeof attributes);
  } else {
    real::pthread_attr_init(&attributes);
  }
  real::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  if (create_thread(&thread, &attributes, await_notice, place) == 0) return 0;
  place->used = false;
  return EAGAIN;
}

// Returns an error number.  `made` gets the notice's number, for the thread that waits for it.
int register_notice(Turn& turn, mqd_t q, const struct sigevent& e, dmt::MessageNotice& like,
                    std::uint32_t& made) noexcept {
  like.object = object_of_queue(turn, q);
  like.process = self.process;
  like.value = value_of(e.sigev_value);
  switch (e.sigev_notify) {
    case SIGEV_NONE:
      like.notify = dmt::Notify::kNothing;
      break;
    case SIGEV_THREAD:
      like.notify = dmt::Notify::kThread;
      break;
    case SIGEV_SIGNAL:
      if (e.sigev_signo < 0 || e.sigev_signo > 64) return EINVAL;
      like.notify = e.sigev_signo == 0 ? dmt::Notify::kNothing : dmt::Notify::kSignal;
      like.signo = static_cast<std::uint8_t>(e.sigev_signo);
      break;
    default:
      return EINVAL;
  }
  if (dmt::find_notice(turn.w, like.object) != dmt::kNoNotice) return EBUSY;
  made = dmt::add_notice(turn.w, like);
  return made == dmt::kNoNotice ? ENOMEM : 0;
}

bool is_queue(mqd_t q) noexcept {
  struct mq_attr now {};
  return !is_own_descriptor(q) && raw_syscall(SYS_mq_getsetattr, q, nullptr, &now) == 0;
}

}  // namespace

mqd_t mq_open(const char* path, int flags, mode_t mode, struct mq_attr* attributes) {
  Turn turn(Op::mq_open);
  const mqd_t q = real::mq_open(path, flags, mode, attributes);
  return finish_int(turn, q < 0 ? -errno : bind_plain(turn, q));
}
mqd_t __mq_open_2(const char* path, int flags) {
  if ((flags & O_CREAT) != 0) fortify::end_in([=] { return real::__mq_open_2(path, flags); });
  return wrap::mq_open(path, flags, 0, nullptr);
}

int mq_close(mqd_t q) {
  if (is_queue(q)) {
    Turn turn(Op::mq_close);
    dmt::remove_notice(turn.w, object_of_queue(turn, q), self.process);
  }
  return wrap::close(q);
}

int mq_unlink(const char* path) {
  return at_turn(Op::mq_unlink, [=] { return real::mq_unlink(path); });
}

int mq_timedsend(mqd_t q, const char* message, size_t n, unsigned priority,
                 const struct timespec* at) {
  Turn turn(Op::mq_timedsend, Turn::kCancellationPoint);
  if (at != nullptr && !is_positive(*at)) return finish_int(turn, -EINVAL);
  const std::uint64_t object = object_of_queue(turn, q);
  bool was_empty = false;
  const long result = until_done(turn, object, waits_until(turn, at), [&] {
    was_empty = is_empty(q);
    return raw_syscall(SYS_mq_timedsend, q, message, n, priority, &kNow);
  });
  if (result < 0) return finish_int(turn, result);
  // A thread that waits in mq_receive takes the message; the notice is sent only when no thread
  // waits.
  const bool received = dmt::signal(turn.w, object, dmt::kAll) > 0;
  if (was_empty && !received) {
    dmt::fire_notice(turn.w, object, sent_by_this_process(SI_MESGQ, 0));
  }
  yield_to_others(turn);
  return finish_int(turn, result);
}

int mq_send(mqd_t q, const char* message, size_t n, unsigned priority) {
  return wrap::mq_timedsend(q, message, n, priority, nullptr);
}

ssize_t mq_timedreceive(mqd_t q, char* message, size_t n, unsigned* priority,
                        const struct timespec* at) {
  Turn turn(Op::mq_timedreceive, Turn::kCancellationPoint);
  if (at != nullptr && !is_positive(*at)) return finish(turn, -EINVAL);
  const std::uint64_t object = object_of_queue(turn, q);
  const long result = until_done(turn, object, waits_until(turn, at), [&] {
    return raw_syscall(SYS_mq_timedreceive, q, message, n, priority, &kNow);
  });
  if (result >= 0 && dmt::signal(turn.w, object, dmt::kAll) > 0) yield_to_others(turn);
  return finish(turn, result);
}

ssize_t mq_receive(mqd_t q, char* message, size_t n, unsigned* priority) {
  return wrap::mq_timedreceive(q, message, n, priority, nullptr);
}

int mq_notify(mqd_t q, const struct sigevent* e) {
  std::uint32_t made = dmt::kNoNotice, generation = 0;
  {
    Turn turn(Op::mq_notify);
    if (!is_queue(q)) return finish_int(turn, -EBADF);
    if (e == nullptr) {
      dmt::remove_notice(turn.w, object_of_queue(turn, q), self.process);
      return finish_int(turn, 0);
    }
    dmt::MessageNotice like{};
    const int error = register_notice(turn, q, *e, like, made);
    if (error != 0) return finish_int(turn, -error);
    generation = turn.w.message_notices[made].generation;
    turn.result(0);
  }
  if (e->sigev_notify != SIGEV_THREAD) return 0;
  const int error = start_waiting(*e, made, generation);
  if (error == 0) return 0;
  Turn turn(Op::mq_notify);
  dmt::remove_notice(turn.w, object_of_queue(turn, q), self.process);
  return finish_int(turn, -error);
}

}  // namespace crane::wrap
