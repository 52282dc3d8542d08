// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/descriptors/fd.h"

#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/processes.h"
#include "runtime/preload/descriptors/flushing.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/self/own_descriptors.h"

namespace crane {
namespace {

constinit Bound descriptors_bound{dmt::kFdsMax, "descriptors of one process",
                                  "no more can be opened (EMFILE)"};

bool in_range(long fd) noexcept { return fd >= 0 && fd < static_cast<long>(dmt::kFdsMax); }

// Wakes the threads blocked on a file whose last descriptor is closed.
void wake_waiters(dmt::Layout& w, std::uint32_t file) noexcept {
  FileRecord& f = w.files[file];
  if (f.references != 1) return;
  dmt::signal(w, f.object, dmt::kAll);
  for (std::uint32_t i = f.watches; i != 0; i = w.watches[i].file_next) {
    const dmt::WatchRecord& r = w.watches[i];
    if (r.kind != dmt::WatchKind::kSlot) continue;
    dmt::wake(w, Slot{static_cast<std::uint16_t>(r.owner)}, dmt::WakeReason::kSignalled);
  }
}

// Whether `fd` refers to `file` directly, or as one of both ends of a named pipe.
bool refers_to(const dmt::Layout& w, int fd, std::uint32_t file) noexcept {
  const std::uint32_t bound = bound_file(fd);
  if (bound == file) return true;
  const FileRecord& f = w.files[bound];
  return f.kind == FileKind::kPipeBoth && (f.both.reads == file || f.both.writes == file);
}

}  // namespace

int await_object(Turn& turn, int fd, std::uint32_t file, std::uint64_t object,
                 const WaitPolicy& policy) noexcept {
  if (policy.nonblocking) return -EAGAIN;
  const std::uint32_t generation = turn.w.files[file].generation;
  const dmt::WakeReason why = turn.wait(object, policy.deadline_ns);
  if (why == dmt::WakeReason::kTimeout) return -EAGAIN;
  if (why == dmt::WakeReason::kInterrupted && !turn.interrupted(policy.restarts)) return -EINTR;
  const bool same = refers_to(turn.w, fd, file) && turn.w.files[file].generation == generation;
  return same ? 0 : -EBADF;
}

int take_interruption(Turn& turn, int fd, std::uint32_t file, const WaitPolicy& policy) noexcept {
  if (policy.nonblocking) return -EAGAIN;
  const std::uint32_t generation = turn.w.files[file].generation;
  if (!turn.interrupted(policy.restarts)) return -EINTR;
  const bool same = refers_to(turn.w, fd, file) && turn.w.files[file].generation == generation;
  return same ? 0 : -EBADF;
}

int await_change(Turn& turn, int fd, std::uint32_t file, const WaitPolicy& policy) noexcept {
  return await_object(turn, fd, file, turn.w.files[file].object, policy);
}

int check_range(long fd) noexcept {
  if (in_range(fd)) return 0;
  descriptors_bound.count_refusal();
  raw_syscall(SYS_close, fd);
  return -EMFILE;
}

int bind_two(Turn& turn, const int made[2], const std::uint32_t files[2], int fds[2]) noexcept {
  for (int i = 0; i < 2; ++i) fds[i] = bind_new(turn, made[i], files[i]);
  if (fds[0] >= 0 && fds[1] >= 0) return 0;
  const int error = fds[0] < 0 ? fds[0] : fds[1];
  for (int i = 0; i < 2; ++i) {
    if (fds[i] >= 0) close_descriptor(turn, fds[i]);
  }
  return error;
}

int bind_new(Turn& turn, long fd, std::uint32_t file) noexcept {
  if (fd < 0) {
    dmt::drop_reference(turn.w, file);
    return static_cast<int>(fd);
  }
  if (const int error = check_range(fd); error < 0) {
    dmt::drop_reference(turn.w, file);
    return error;
  }
  forget_writable(static_cast<int>(fd));
  dmt::bind_descriptor(turn.w, self.process, static_cast<int>(fd), file);
  return static_cast<int>(fd);
}

void forget_descriptor(Turn& turn, int fd) noexcept {
  const std::uint32_t file = bound_file(fd);
  if (file != 0) {
    wake_waiters(turn.w, file);
    dmt::unbind_descriptor(turn.w, self.process, fd);
  }
  forget_writable(fd);
}

int bind_plain(Turn& turn, long fd) noexcept {
  if (fd >= 0) forget_descriptor(turn, static_cast<int>(fd));
  return static_cast<int>(fd);
}

int close_descriptor(Turn& turn, int fd) noexcept {
  await_flushes(fd, fd);
  if (is_plain(fd)) {
    settle_time(turn.w, fd);
    notify::closing(turn.w, {fd, fd});
  }
  forget_descriptor(turn, fd);
  const long result = raw_syscall(SYS_close, fd);
  return static_cast<int>(result);
}

int bind_duplicate(Turn& turn, int fd, long to) noexcept {
  if (to < 0) return static_cast<int>(to);
  const std::uint32_t file = bound_file(fd);
  if (file == 0) {
    bind_plain(turn, to);
    copy_writable(fd, static_cast<int>(to));
    return static_cast<int>(to);
  }
  dmt::add_reference(turn.w, file);
  if (in_range(to)) forget_descriptor(turn, static_cast<int>(to));
  return bind_new(turn, to, file);
}

long make_placeholder(int flags) noexcept {
  constexpr int kKept = SOCK_NONBLOCK | SOCK_CLOEXEC;
  return raw_syscall(SYS_socket, AF_UNIX, SOCK_STREAM | (flags & kKept), 0);
}

int bind_virtual(Turn& turn, long fd, FileKind kind, bool nonblocking) noexcept {
  if (fd < 0) return static_cast<int>(fd);
  const std::uint32_t file = dmt::create_file(turn.w, own_slot(), kind);
  if (file == 0) {
    raw_syscall(SYS_close, fd);
    return -ENFILE;
  }
  turn.w.files[file].nonblocking = nonblocking;
  return bind_new(turn, fd, file);
}

int new_socket(Turn& turn, FileKind kind, int domain, int type) noexcept {
  const std::uint32_t file = dmt::create_file(turn.w, own_slot(), kind);
  if (file == 0) return -ENFILE;
  FileRecord& f = turn.w.files[file];
  f.port = static_cast<std::uint16_t>(domain);
  f.nonblocking = (type & SOCK_NONBLOCK) != 0;
  return bind_new(turn, make_placeholder(type), file);
}

bool is_open(int fd) noexcept {
  return !is_own_descriptor(fd) && raw_syscall(SYS_fcntl, fd, F_GETFD) >= 0;
}

void regain(Turn& turn) noexcept {
  if (!dmt::has_turn(turn.w, own_slot())) turn.take();
}

void raise_virtually(Turn& turn, int signo) noexcept {
  dmt::send_signal_to_slot(turn.w, own_slot(), signo);
}

bool first_time(bool& logged) noexcept {
  const bool first = !logged;
  logged = true;
  return first;
}

int descriptor_named(const char* path) noexcept {
  if (path == nullptr) return -1;
  constexpr const char* kStandard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  for (int i = 0; i < 3; ++i) {
    if (std::strcmp(path, kStandard[i]) == 0) return i;
  }
  for (const char* directory : {"/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/"}) {
    const std::size_t n = std::strlen(directory);
    if (std::strncmp(path, directory, n) != 0) continue;
    std::uint32_t fd;
    const char* const end = parse_number(path + n, fd);
    return *end == '\0' && end != path + n ? static_cast<int>(fd) : -1;
  }
  return -1;
}

}  // namespace crane
