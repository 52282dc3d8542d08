// SPDX-License-Identifier: Apache-2.0
// POSIX asynchronous I/O. libc would start threads that are not in the schedule. In Crane a request
// is complete when the call returns, which POSIX allows. Queries of its state (aio_error,
// aio_return, aio_suspend, aio_cancel) go to libc, which finds it complete.
#include "dmt/base/log.h"
#include "dmt/processes.h"
#include "runtime/preload/descriptors/completion.h"
#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/descriptors/room.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/own_descriptors.h"
#include "runtime/preload/signals/signals.h"

namespace crane {
namespace wrap {
namespace {

// Both have one layout, because off_t has 64 bits.
static_assert(sizeof(struct aiocb) == sizeof(struct aiocb64));
struct aiocb* plain_form(struct aiocb64* c) noexcept {
  return reinterpret_cast<struct aiocb*>(c);
}

enum class Request : std::uint8_t { kRead, kWrite, kSync, kDataSync };

int refuse() noexcept {
  static bool reported = false;
  if (first_time(reported)) {
    Message() << "aio on a socket or pipe is not supported: the call fails, use read and write";
  }
  return fail(ENOSYS);
}

struct Notice {
  bool used;
  void (*function)(union sigval);
  union sigval value;
};
constexpr std::size_t kNoticesMax = 64;
Notice notices[kNoticesMax];

void* notify_by_thread(void* given) noexcept {
  auto& shared = *static_cast<Notice*>(given);
  const Notice notice = shared;
  __atomic_store_n(&shared.used, false, __ATOMIC_RELEASE);
  notice.function(notice.value);
  return nullptr;
}

// Claims a free notice. When all are taken, the threads that own them have not run yet; they run
// first.
Notice& claim_notice() noexcept {
  for (;;) {
    for (Notice& n : notices) {
      if (!__atomic_exchange_n(&n.used, true, __ATOMIC_ACQ_REL)) return n;
    }
    Turn turn(Op::sched_yield);
    turn.yield();
  }
}

void start_notice(const struct sigevent& e) noexcept {
  Notice& n = claim_notice();
  n.function = e.sigev_notify_function;
  n.value = e.sigev_value;
  pthread_t thread;
  const pthread_attr_t* given = static_cast<const pthread_attr_t*>(e.sigev_notify_attributes);
  if (wrap::pthread_create(&thread, given, notify_by_thread, &n) != 0) {
    __atomic_store_n(&n.used, false, __ATOMIC_RELEASE);
    return;
  }
  int state = PTHREAD_CREATE_JOINABLE;
  if (given != nullptr) pthread_attr_getdetachstate(given, &state);
  if (state == PTHREAD_CREATE_JOINABLE) wrap::pthread_detach(thread);
}

}  // namespace
}  // namespace wrap

int notify_done(Op op, const struct sigevent& e, int code) noexcept {
  if (e.sigev_notify == SIGEV_THREAD) wrap::start_notice(e);
  if (e.sigev_notify != SIGEV_SIGNAL) return 0;
  if (e.sigev_signo < 0 || e.sigev_signo > 64) return EINVAL;
  // A zeroed request names signal 0, for which the kernel sends nothing.
  if (e.sigev_signo == 0) return 0;
  Turn turn(op);
  dmt::send_signal(turn.w, self.process, e.sigev_signo,
                   sent_by_this_process(code, value_of(e.sigev_value)));
  return 0;
}

namespace wrap {
namespace {

long perform(const struct aiocb& c, Request what) noexcept {
  const int fd = c.aio_fildes;
  auto* bytes = const_cast<void*>(c.aio_buf);
  switch (what) {
    case Request::kRead:
      return raw_syscall(SYS_pread64, fd, bytes, c.aio_nbytes, c.aio_offset);
    case Request::kWrite:
      note_written(fd);
      return with_room_raw(
          [&] { return raw_syscall(SYS_pwrite64, fd, bytes, c.aio_nbytes, c.aio_offset); }, fd);
    case Request::kSync:
      return raw_syscall(SYS_fsync, fd);
    case Request::kDataSync:
      return raw_syscall(SYS_fdatasync, fd);
  }
  return -EINVAL;
}

// Returns false when the request cannot be accepted (errno).
bool request(Op op, struct aiocb* c, Request what) noexcept {
  Turn turn(op);
  const bool transfers = what == Request::kRead || what == Request::kWrite;
  if (!is_plain(c->aio_fildes)) return refuse() == 0;
  if (transfers && c->aio_reqprio < 0) return fail(EINVAL) == 0;
  const long result = is_own_descriptor(c->aio_fildes) ? -EBADF : perform(*c, what);
  c->__error_code = result < 0 ? static_cast<int>(-result) : 0;
  c->__return_value = result < 0 ? -1 : result;
  if (transfers && result > 0) {
    const bool reads = what == Request::kRead;
    notify::by_descriptor(turn.w, c->aio_fildes, reads ? IN_ACCESS : IN_MODIFY);
  }
  turn.result(static_cast<std::int64_t>(result));
  return true;
}

int one(Op op, struct aiocb* c, Request what) noexcept {
  if (!request(op, c, what)) return -1;
  if (const int error = notify_done(op, c->aio_sigevent, SI_ASYNCIO); error != 0) {
    c->__error_code = error;  // as libc sets it for a completed request
    c->__return_value = -1;
  }
  return 0;
}

}  // namespace

int aio_read(struct aiocb* c) { return one(Op::aio_read, c, Request::kRead); }
int aio_write(struct aiocb* c) { return one(Op::aio_write, c, Request::kWrite); }
int aio_fsync(int how, struct aiocb* c) {
  if (how != O_SYNC && how != O_DSYNC) return fail(EINVAL);
  // As libc, before the request is accepted.
  if (is_plain(c->aio_fildes) && raw_syscall(SYS_fcntl, c->aio_fildes, F_GETFL) < 0) {
    return fail(EBADF);
  }
  return one(Op::aio_fsync, c, how == O_SYNC ? Request::kSync : Request::kDataSync);
}

int lio_listio(int mode, struct aiocb* const* list, int n, struct sigevent* e) {
  if (mode != LIO_WAIT && mode != LIO_NOWAIT) return fail(EINVAL);
  bool good = true;
  for (int i = 0; i < n; ++i) {
    if (list[i] == nullptr || list[i]->aio_lio_opcode == LIO_NOP) continue;
    const bool reads = list[i]->aio_lio_opcode == LIO_READ;
    if (one(Op::lio_listio, list[i], reads ? Request::kRead : Request::kWrite) != 0) {
      good = false;
    } else if (mode == LIO_WAIT && list[i]->__error_code != 0) {
      good = false;
    }
  }
  if (mode == LIO_NOWAIT && e != nullptr) notify_done(Op::lio_listio, *e, SI_ASYNCIO);
  return good ? 0 : fail(EIO);
}

int aio_read64(struct aiocb64* c) { return wrap::aio_read(plain_form(c)); }
int aio_write64(struct aiocb64* c) { return wrap::aio_write(plain_form(c)); }
int aio_fsync64(int how, struct aiocb64* c) { return wrap::aio_fsync(how, plain_form(c)); }
int lio_listio64(int mode, struct aiocb64* const* list, int n, struct sigevent* e) {
  return wrap::lio_listio(mode, reinterpret_cast<struct aiocb* const*>(list), n, e);
}

}  // namespace wrap
}  // namespace crane
