// SPDX-License-Identifier: Apache-2.0
// Descriptors (close, dup, fcntl, ioctl), file names and file locks. A call that changes a name
// space that threads share is an operation of the schedule (rule 10).
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/sockios.h>
#include <sys/sysmacros.h>

#include <climits>

#include "dmt/file_kind.h"
#include "dmt/urgent.h"
#include "runtime/preload/descriptors/file_lock.h"
#include "runtime/preload/descriptors/flushing.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/descriptors/machine_files.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/descriptors/room.h"
#include "runtime/preload/files/file_ops.h"
#include "runtime/preload/files/file_owner.h"
#include "runtime/preload/files/stdio_streams.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/own_descriptors.h"
#include "runtime/preload/sockets/interfaces.h"
#include "runtime/preload/sockets/stream.h"
#include "runtime/preload/sockets/tcp_socket.h"
#include "runtime/preload/terminals/terminal.h"
#include "runtime/preload/turn/vtime.h"

namespace crane::wrap {
namespace {

int status_flags(const FileRecord& f, int fd) noexcept {
  const int ours = (f.nonblocking ? O_NONBLOCK : 0) | (f.owner.wants_signal ? O_ASYNC : 0);
  if (ops_of(f).shares_placeholder) return O_RDWR | ours;
  const long kernel = raw_syscall(SYS_fcntl, fd, F_GETFL);
  if (kernel < 0) return static_cast<int>(kernel);
  return static_cast<int>((kernel & ~O_NONBLOCK) | ours);
}

// Sets the kernel's flags, too, for kinds of files whose bytes the kernel carries.
int set_status_flags(Turn& turn, FileRecord& f, int fd, long flags) noexcept {
  if (f.kind == FileKind::kPipeWrite) {
    const int error = stream::set_packets(turn.w, bound_file(fd), (flags & O_DIRECT) != 0);
    if (error < 0) return error;
  }
  const bool on = (flags & O_NONBLOCK) != 0;
  f.nonblocking = on;
  file_owner::set_async(f, fd, (flags & O_ASYNC) != 0);
  if (f.kind == FileKind::kPipeBoth) {
    turn.w.files[f.both.reads].nonblocking = turn.w.files[f.both.writes].nonblocking = on;
  }
  if (ops_of(f).shares_placeholder) return 0;
  const long kept = ops_of(f).kernel_flags;
  const long kernel = raw_syscall(SYS_fcntl, fd, F_GETFL);
  if (kernel < 0) return static_cast<int>(kernel);
  return static_cast<int>(raw_syscall(SYS_fcntl, fd, F_SETFL, (kernel & ~kept) | (flags & kept)));
}

int duplicate(Turn& turn, int fd, int command, long least) noexcept {
  return bind_duplicate(turn, fd, raw_syscall(SYS_fcntl, fd, command, least));
}

int control(Turn& turn, int fd, int command, long x) noexcept {
  FileRecord* f = bound_record(fd);
  if (f != nullptr) {
    const int answer = file_owner::control(turn, *f, command, x);
    if (answer != file_owner::kNotOfOwner) return answer;
  }
  switch (command) {
    case F_NOTIFY:  // the kernel's signal would come at any time
    case F_SETLEASE:
      return -EINVAL;
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
      return duplicate(turn, fd, command, x);
    case F_GETFL:
      if (f != nullptr) return status_flags(*f, fd);
      break;
    case F_SETFL:
      if (f != nullptr) return set_status_flags(turn, *f, fd, x);
      break;
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
      return file_lock::record(turn, fd, command, x);
    case F_GETPIPE_SZ:
    case F_SETPIPE_SZ:
      if (f == nullptr) break;
      if (!dmt::is_pipe_end(f->kind)) return -EBADF;
      return command == F_GETPIPE_SZ ? stream::pipe_size(*f)
                                     : stream::set_pipe_size(turn, fd, bound_file(fd), x);
    default:
      break;
  }
  return static_cast<int>(raw_syscall(SYS_fcntl, fd, command, x));
}

// F_GETOWN. A group is a negative number but not an error, so this uses F_GETOWN_EX as libc does.
int owner_of(Turn& turn, int fd) noexcept {
  struct f_owner_ex owner = {};
  const int asked = control(turn, fd, F_GETOWN_EX, reinterpret_cast<long>(&owner));
  const int result = finish_int(turn, asked);
  if (result < 0) return result;
  return owner.type == F_OWNER_PGRP ? -owner.pid : owner.pid;
}

// Whether the command only reads, or affects only a plain descriptor.
bool needs_no_turn(int fd, int command) noexcept {
  if (command == F_GETFD || command == F_SETFD) return true;
  return is_plain(fd) && (command == F_GETFL || command == F_SETFL || command == F_GETLK);
}

int give(long where, std::uint64_t number) noexcept {
  *reinterpret_cast<int*>(where) = static_cast<int>(number);
  return 0;
}

bool is_tcp(FileKind kind) noexcept {
  return kind == FileKind::kSocket || kind == FileKind::kListener || kind == FileKind::kConnection;
}

int device_control(Turn& turn, int fd, unsigned long command, long x) noexcept {
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return -EBADF;
  FileRecord& f = turn.w.files[file];
  if (terminal::is_terminal(f.kind)) {
    const int answer = terminal::control(turn, fd, file, command, x);
    if (answer != terminal::kNotTerminal) return answer;
  }
  switch (command) {
    case FIONBIO: {
      const int others = status_flags(f, fd) & ~O_NONBLOCK;
      const bool on = *reinterpret_cast<const int*>(x) != 0;
      return set_status_flags(turn, f, fd, on ? others | O_NONBLOCK : others);
    }
    case FIONREAD:
      if (const std::int64_t bytes = ops_of(f).unread(turn.w, file); bytes != kKernelKnows) {
        return give(x, static_cast<std::uint64_t>(bytes));
      }
      break;
    case SIOCOUTQ:
      if (dmt::is_host_fifo(f)) break;
      if (f.kind != FileKind::kConnection) return give(x, 0);
      return give(x, f.connection.sent - f.connection.drained);
    case SIOCATMARK:
      if (!is_tcp(f.kind) || dmt::is_host_fifo(f)) break;
      return give(x, f.kind == FileKind::kConnection && dmt::is_at_mark(f.connection) ? 1 : 0);
    default:
      break;
  }
  const int answer = file_owner::device_control(turn, f, fd, command, x);
  if (answer != file_owner::kNotOfOwner) return answer;
  return static_cast<int>(raw_syscall(SYS_ioctl, fd, command, x));
}

constexpr int kNotOfFiles = 1;

// Answers queries about how the file system stores a file, alike for all file systems. 0, a
// negative error number, or kNotOfFiles for other commands.
int of_file_system(unsigned long command, long x) noexcept {
  switch (command) {
    case FIGETBSZ:
      return give(x, kFileBlockBytes);
    case FS_IOC_FIEMAP:
    case FICLONE:
    case FICLONERANGE:
    case FIDEDUPERANGE:
      return -EOPNOTSUPP;
    case FIBMAP:
    case FITRIM:
    case FS_IOC_GETFLAGS:
    case FS_IOC_SETFLAGS:
    case FS_IOC_GETVERSION:
    case FS_IOC_SETVERSION:
    case FS_IOC_FSGETXATTR:
    case FS_IOC_FSSETXATTR:
    case FIOASYNC:
      return -ENOTTY;
    default:
      return kNotOfFiles;
  }
}

int finish_plain(int answer) noexcept { return answer < 0 ? fail(-answer) : answer; }

int duplicate_to(Op op, int fd, int to, int flags) noexcept {
  int result;
  {
    Turn turn(op);
    if (is_own_descriptor(to)) return finish_int(turn, -EBADF);
    if (fd == to) {
      const int same = op == Op::dup3 ? -EINVAL : is_open(fd) ? fd : -EBADF;
      return finish_int(turn, same);
    }
    await_flushes(to, to);
    if (is_plain(to)) {
      settle_time(turn.w, to);
      if (is_open(fd)) notify::closing(turn.w, {to, to});
    }
    result = finish_int(turn, bind_duplicate(turn, fd, raw_syscall(SYS_dup3, fd, to, flags)));
    file_lock::wake_lock_waiters(turn.w);  // the locks that `to` held
  }
  if (result >= 0 && result <= STDERR_FILENO) adopt_standard_stream(result);
  return result;
}

void close_bound(Turn& turn, unsigned first, unsigned last) noexcept {
  const unsigned limit = turn.w.processes[self.process].fd_limit;
  for (unsigned fd = first; fd < limit && fd <= last; ++fd) {
    if (!is_plain(static_cast<int>(fd))) forget_descriptor(turn, static_cast<int>(fd));
  }
}

// Our descriptors are in the middle of the range, so it is closed as two ranges (D13).
int close_all(Turn& turn, unsigned first, unsigned last, int flags) noexcept {
  if (first > last) return -EINVAL;
  if ((flags & CLOSE_RANGE_CLOEXEC) == 0) {
    await_flushes(static_cast<int>(first), last > INT_MAX ? INT_MAX : static_cast<int>(last));
    notify::closing(turn.w, {first > INT_MAX ? INT_MAX : static_cast<int>(first),
                             last > INT_MAX ? INT_MAX : static_cast<int>(last)});
    close_bound(turn, first, last);
  }
  const auto base = static_cast<unsigned>(own_descriptor_base());
  const auto end = static_cast<unsigned>(own_descriptor_end());
  long result = 0;
  if (first < base) {
    result = raw_syscall(SYS_close_range, first, last < base ? last : base - 1, flags);
  }
  if (result >= 0 && last >= end) {
    result = raw_syscall(SYS_close_range, first > end ? first : end, last, flags);
  }
  return static_cast<int>(result);
}

// Folds the result of a call of libc's form.
int record_result(Turn& turn, int result) noexcept {
  turn.result(result < 0 ? -static_cast<std::int64_t>(errno) : std::int64_t{result});
  return result;
}

// A call that creates the name `path`; `note` records the change.
template <typename Note, typename Call>
int make_name(Op op, Note note, int directory, const char* path, std::uint32_t kind,
              Call call) noexcept {
  Turn turn(op);
  const int result = with_room(call);
  if (result == 0) {
    note(turn, directory, path);
    notify::made(turn.w, directory, path, kind);
  }
  return record_result(turn, result);
}

template <typename Call>
int link_name(Op op, const notify::Name& from, int flags, const notify::Name& to,
              Call call) noexcept {
  Turn turn(op);
  const int result = with_room(call);
  if (result == 0) {
    note_parent(turn, to.directory, to.path);
    notify::linked(turn.w, from, flags, to);
  }
  return record_result(turn, result);
}

template <typename Call>
int remove_name(Op op, int directory, const char* path, Call call) noexcept {
  Turn turn(op);
  notify::Before file;
  notify::look_before(turn.w, directory, path, file);
  const int result = with_room(call);
  if (result == 0) {
    note_parent(turn, directory, path);
    notify::removed(turn.w, directory, path, file);
  }
  return record_result(turn, result);
}

// Refuses to make or remove a directory in a kernel file system, where it is a control group or the
// like.
template <typename Call>
int if_private(int directory, const char* path, Call call) noexcept {
  return machine_files::is_made_in(directory, path) ? fail(EACCES) : call();
}

}  // namespace

int close(int fd) {
  Turn turn(Op::close);
  const int result = close_descriptor(turn, fd);
  file_lock::wake_lock_waiters(turn.w);
  if (is_parallel()) turn.yield();  // rule 23
  return finish_int(turn, result);
}

int close_range(unsigned first, unsigned last, int flags) {
  Turn turn(Op::close_range);
  const int result = close_all(turn, first, last, flags);
  file_lock::wake_lock_waiters(turn.w);
  return finish_int(turn, result);
}
void closefrom(int first) {
  Turn turn(Op::closefrom);
  turn.result(close_all(turn, first < 0 ? 0 : static_cast<unsigned>(first), ~0u, 0));
  file_lock::wake_lock_waiters(turn.w);
}

int dup(int fd) {
  Turn turn(Op::dup);
  return finish_int(turn, bind_duplicate(turn, fd, raw_syscall(SYS_dup, fd)));
}
int dup2(int fd, int to) { return duplicate_to(Op::dup2, fd, to, 0); }
int dup3(int fd, int to, int flags) { return duplicate_to(Op::dup3, fd, to, flags); }

int fcntl(int fd, int c, long x) {
  if (needs_no_turn(fd, c)) {
    // O_DIRECT as in open(); O_ASYNC because the kernel's signal would come at any time.
    return real::fcntl(fd, c, c == F_SETFL ? x & ~long{O_DIRECT | O_ASYNC} : x);
  }
  Turn turn(Op::fcntl);
  if (c == F_GETOWN) return owner_of(turn, fd);
  return finish_int(turn, control(turn, fd, c, x));
}
int fcntl64(int fd, int c, long x) { return wrap::fcntl(fd, c, x); }

int ioctl(int fd, unsigned long c, long x) {
  if (interfaces::is_command(c) && is_open(fd)) {
    Turn turn(Op::ioctl);
    return finish_int(turn, interfaces::control(c, reinterpret_cast<void*>(x)));
  }
  if (is_plain(fd)) {
    if (const int answer = of_file_system(c, x); answer != kNotOfFiles) {
      return is_open(fd) ? finish_plain(answer) : fail(EBADF);
    }
    return real::ioctl(fd, c, x);
  }
  Turn turn(Op::ioctl);
  return finish_int(turn, device_control(turn, fd, c, x));
}

// --- locks ---------------------------------------------------------------------------------------

int flock(int fd, int how) {
  Turn turn(Op::flock);
  return finish_int(turn, file_lock::whole_file(turn, fd, how));
}

int lockf(int fd, int how, off_t n) {
  struct flock lock {};
  lock.l_whence = SEEK_CUR;
  lock.l_len = n;
  lock.l_type = F_WRLCK;
  switch (how) {
    case F_ULOCK:
      lock.l_type = F_UNLCK;
      return wrap::fcntl(fd, F_SETLK, reinterpret_cast<long>(&lock));
    case F_LOCK:
      return wrap::fcntl(fd, F_SETLKW, reinterpret_cast<long>(&lock));
    case F_TLOCK:
      return wrap::fcntl(fd, F_SETLK, reinterpret_cast<long>(&lock));
    default:
      return real::lockf(fd, how, n);
  }
}
int lockf64(int fd, int how, off64_t n) { return wrap::lockf(fd, how, n); }

// --- names ---------------------------------------------------------------------------------------

int unlink(const char* p) {
  return remove_name(Op::unlink, AT_FDCWD, p, [=] { return real::unlink(p); });
}
int unlinkat(int d, const char* p, int f) {
  return remove_name(Op::unlinkat, d, p, [=] {
    const auto call = [=] { return real::unlinkat(d, p, f); };
    return (f & AT_REMOVEDIR) != 0 ? if_private(d, p, call) : call();
  });
}
int remove(const char* p) {
  return remove_name(Op::remove, AT_FDCWD, p, [=] { return real::remove(p); });
}
int rename(const char* p, const char* q) { return wrap::renameat2(AT_FDCWD, p, AT_FDCWD, q, 0); }
int renameat(int d, const char* p, int e, const char* q) { return wrap::renameat2(d, p, e, q, 0); }
int renameat2(int d, const char* p, int e, const char* q, unsigned f) {
  Turn turn(Op::renameat2);
  notify::Before file, target;
  notify::look_before(turn.w, d, p, file);
  notify::look_before(turn.w, e, q, target);
  const int result = with_room([=] { return real::renameat2(d, p, e, q, f); });
  if (result == 0) {
    note_parent(turn, d, p);
    note_parent(turn, e, q);
    notify::moved(turn.w, {d, p}, {e, q}, file, target, (f & RENAME_EXCHANGE) != 0);
  }
  return record_result(turn, result);
}
int link(const char* p, const char* q) {
  return link_name(Op::link, {AT_FDCWD, p}, 0, {AT_FDCWD, q}, [=] { return real::link(p, q); });
}
int linkat(int d, const char* p, int e, const char* q, int f) {
  return link_name(Op::linkat, {d, p}, f, {e, q}, [=] { return real::linkat(d, p, e, q, f); });
}
int symlink(const char* p, const char* q) {
  return make_name(Op::symlink, note_made, AT_FDCWD, q, 0, [=] { return real::symlink(p, q); });
}
int symlinkat(const char* p, int d, const char* q) {
  return make_name(Op::symlinkat, note_made, d, q, 0, [=] { return real::symlinkat(p, d, q); });
}
int mkdir(const char* p, mode_t m) {
  return make_name(Op::mkdir, note_made, AT_FDCWD, p, IN_ISDIR,
                   [=] { return if_private(AT_FDCWD, p, [=] { return real::mkdir(p, m); }); });
}
int mkdirat(int d, const char* p, mode_t m) {
  return make_name(Op::mkdirat, note_made, d, p, IN_ISDIR,
                   [=] { return if_private(d, p, [=] { return real::mkdirat(d, p, m); }); });
}
int rmdir(const char* p) {
  return remove_name(Op::rmdir, AT_FDCWD, p,
                     [=] { return if_private(AT_FDCWD, p, [=] { return real::rmdir(p); }); });
}
int mkfifo(const char* p, mode_t m) {
  return make_name(Op::mkfifo, note_made, AT_FDCWD, p, 0, [=] { return real::mkfifo(p, m); });
}
int mkfifoat(int d, const char* p, mode_t m) {
  return make_name(Op::mkfifoat, note_made, d, p, 0, [=] { return real::mkfifoat(d, p, m); });
}
int mknod(const char* p, mode_t m, dev_t n) { return wrap::mknodat(AT_FDCWD, p, m, n); }
int mknodat(int d, const char* p, mode_t m, dev_t n) {
  return make_name(Op::mknodat, note_made, d, p, 0, [=] { return real::mknodat(d, p, m, n); });
}
// The names that programs built for an older libc call.
int __xmknod(int v, const char* p, mode_t m, dev_t* n) {
  return wrap::__xmknodat(v, AT_FDCWD, p, m, n);
}
int __xmknodat(int v, int d, const char* p, mode_t m, dev_t* n) {
  return v == 0 ? wrap::mknodat(d, p, m, *n) : fail(EINVAL);
}
int shm_unlink(const char* p) {
  return at_turn(Op::shm_unlink, [=] { return real::shm_unlink(p); });
}
int truncate(const char* p, off_t n) {
  Turn turn(Op::truncate);
  const bool is_private = !machine_files::is_named(turn, AT_FDCWD, p);
  const int result = is_private ? with_room([=] { return real::truncate(p, n); }) : fail(EACCES);
  if (result == 0) {
    note_truncated(turn, p);
    notify::by_place(turn.w, AT_FDCWD, p, 0, IN_MODIFY);
  }
  return record_result(turn, result);
}
int truncate64(const char* p, off64_t n) { return wrap::truncate(p, n); }
int ftruncate(int fd, off_t n) {
  return at_turn(Op::ftruncate, [=]() CRANE_REQUIRES_TURN {
    note_written(fd);
    const int result = with_room([=] { return real::ftruncate(fd, n); }, fd);
    if (result == 0) notify::by_descriptor(*segment, fd, IN_MODIFY);
    return result;
  });
}
int ftruncate64(int fd, off64_t n) { return wrap::ftruncate(fd, n); }
int chdir(const char* p) {
  return at_turn(Op::chdir, [=] { return real::chdir(p); });
}
int fchdir(int fd) {
  return at_turn(Op::fchdir, [=] { return real::fchdir(fd); });
}
mode_t umask(mode_t m) {
  Turn turn(Op::umask);
  return real::umask(m);
}

}  // namespace crane::wrap
