// SPDX-License-Identifier: Apache-2.0
// Descriptors that name processes (pidfd). They are virtual, because they become readable when a
// process ends, at a turn.
#include "runtime/preload/processes/pidfd.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <cstring>

#include "dmt/processes.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/own_descriptors.h"
#include "runtime/preload/signals/signals.h"

namespace crane {
namespace {

const FileRecord* record_of(int fd) noexcept {
  const FileRecord* f = bound_record(fd);
  return f != nullptr && f->kind == FileKind::kProcess ? f : nullptr;
}

constexpr unsigned kNonblocking = O_NONBLOCK;  // PIDFD_NONBLOCK

int open_process(Turn& turn, pid_t p, unsigned flags) noexcept {
  if ((flags & ~kNonblocking) != 0 || p <= 0) return -EINVAL;
  const std::uint16_t process = dmt::find_process(turn.w, static_cast<std::uint32_t>(p));
  if (process == dmt::kNoProcess) return -ESRCH;
  const std::uint32_t file = dmt::create_file(turn.w, own_slot(), FileKind::kProcess);
  if (file == 0) return -ENFILE;
  FileRecord& f = turn.w.files[file];
  f.port = process;
  f.nonblocking = (flags & kNonblocking) != 0;
  f.counter.signal_mask = turn.w.processes[process].life;
  f.counter.count = turn.w.processes[process].state == dmt::ProcessState::kZombie ? 1 : 0;
  dmt::refresh_readiness(turn.w, file, false);
  return bind_new(turn, make_placeholder(SOCK_CLOEXEC), file);
}

// The directory of a process in a proc file system names the process, too. `path` is the text of
// the descriptor's link, terminated: it ends with the number, or does not name a process.
int process_named_by(const dmt::Layout& w, const char* path) noexcept {
  const char* const name = std::strrchr(path, '/') + 1;
  constexpr char kThreads[] = "/task/";
  const std::size_t before = static_cast<std::size_t>(name - path);
  const bool is_thread =
      before >= sizeof kThreads - 1 &&
      std::memcmp(name - (sizeof kThreads - 1), kThreads, sizeof kThreads - 1) == 0;
  std::uint32_t pid;
  const char* const end = parse_number(name, pid);
  if (end == name || is_thread) return -EBADF;
  if (*end == ' ') return -ESRCH;  // " (deleted)": the process was reaped
  if (*end != '\0') return -EBADF;
  const std::uint16_t process = dmt::find_process(w, pid);
  return process == dmt::kNoProcess ? -ESRCH : process;
}

int process_of_directory(const dmt::Layout& w, int fd) noexcept {
  struct statfs s {};
  if (fd < 0 || !is_plain(fd) || raw_syscall(SYS_fstatfs, fd, &s) != 0) return -EBADF;
  if (s.f_type != PROC_SUPER_MAGIC) return -EBADF;
  char path[128];
  const long n = read_link_of(static_cast<unsigned>(fd), path, sizeof path - 1);
  if (n <= 0 || path[0] != '/') return -EBADF;
  path[n] = '\0';
  return process_named_by(w, path);
}

// Returns a descriptor of this process for the file that `target` is in the other one.
int take_descriptor(Turn& turn, std::uint16_t process, int target) noexcept {
  const dmt::ProcessRecord& p = turn.w.processes[process];
  if (p.state == dmt::ProcessState::kZombie) return -ESRCH;
  if (is_own_descriptor(target)) return -EBADF;  // OWN-FD-1: the same numbers in all processes
  const long kernels = raw_syscall(SYS_pidfd_open, p.pid, 0);
  if (kernels < 0) return static_cast<int>(kernels);
  const long taken = raw_syscall(SYS_pidfd_getfd, kernels, target, 0);
  raw_syscall(SYS_close, kernels);
  if (taken < 0) return static_cast<int>(taken);
  // The lowest free number, which the kernel's pidfd occupied until now.
  const long fd = raw_syscall(SYS_fcntl, taken, F_DUPFD_CLOEXEC, 0);
  raw_syscall(SYS_close, taken);
  if (fd < 0) return static_cast<int>(fd);
  if (const int error = check_range(fd); error < 0) return error;
  const std::uint32_t file = dmt::file_of(turn.w, process, target);
  if (file != 0) {
    dmt::add_reference(turn.w, file);
    return bind_new(turn, fd, file);
  }
  const int number = bind_plain(turn, fd);
  note_opened(turn, number, false);
  return number;
}

}  // namespace

int process_of_descriptor(const dmt::Layout& w, int fd, bool& nonblocking) noexcept {
  const FileRecord* f = record_of(fd);
  if (f == nullptr) return -EBADF;
  nonblocking = f->nonblocking;
  return dmt::names_process(w, *f, f->port) ? f->port : -ESRCH;
}

namespace wrap {

int pidfd_open(pid_t p, unsigned flags) {
  Turn turn(Op::pidfd_open);
  return finish_int(turn, open_process(turn, p, flags));
}

int pidfd_send_signal(int fd, int s, siginfo_t* info, unsigned flags) {
  Turn turn(Op::pidfd_send_signal);
  if (flags != 0) return finish_int(turn, -EINVAL);
  bool nonblocking = false;
  int process = process_of_descriptor(turn.w, fd, nonblocking);
  if (process == -EBADF) process = process_of_directory(turn.w, fd);
  if (process < 0) return finish_int(turn, process);
  const bool queued = info != nullptr && info->si_code == SI_QUEUE;
  const dmt::SignalInfo sent = sent_by_this_process(
      queued ? SI_QUEUE : SI_USER, queued ? value_of(info->si_value) : std::uint64_t{0});
  if (s < 0 || s > 64) return finish_int(turn, -EINVAL);
  return finish_int(turn, -send_to_process(turn.w, static_cast<std::uint16_t>(process), s, sent));
}

int pidfd_getfd(int fd, int target, unsigned flags) {
  Turn turn(Op::pidfd_getfd);
  if (flags != 0) return finish_int(turn, -EINVAL);
  bool nonblocking = false;
  const int process = process_of_descriptor(turn.w, fd, nonblocking);
  if (process < 0) return finish_int(turn, process);
  return finish_int(turn, take_descriptor(turn, static_cast<std::uint16_t>(process), target));
}

}  // namespace wrap
}  // namespace crane
