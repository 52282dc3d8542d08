// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/terminals/terminal.h"

#include <sys/sysmacros.h>
#include <termios.h>

#include <algorithm>
#include <cstring>

#include "dmt/controlling_terminals.h"
#include "dmt/terminals.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/sockets/tcp_socket.h"
#include "runtime/preload/terminals/path.h"
#include "runtime/preload/turn/vtime.h"

namespace crane::terminal {
namespace {

constexpr std::size_t kChunk = 4096;
constexpr std::int64_t kNsPerDecisecond = 100'000'000;
constexpr unsigned kMasterMajor = 5, kMasterMinor = 2, kLineMajor = 136, kTtyMinor = 0;

bool is_master_name(const char* path) noexcept {
  return std::strcmp(path, "/dev/ptmx") == 0 || std::strcmp(path, "/dev/pts/ptmx") == 0;
}

bool reads(int flags) noexcept { return (flags & O_ACCMODE) != O_WRONLY; }

std::uint32_t kernel_number(long fd) noexcept {
  std::uint32_t number = 0;
  raw_syscall(SYS_ioctl, fd, TIOCGPTN, &number);
  return number;
}

int open_master(Turn& turn, int directory, const char* path, int flags) noexcept {
  const long fd = raw_syscall(SYS_openat, directory, path, flags | O_NOCTTY, 0);
  if (fd < 0) return static_cast<int>(fd);
  const std::int64_t file = dmt::create_terminal(turn.w, own_slot(), kernel_number(fd));
  if (file < 0) {
    raw_syscall(SYS_close, fd);
    return static_cast<int>(file);
  }
  turn.w.files[file].nonblocking = (flags & O_NONBLOCK) != 0;
  return bind_new(turn, fd, static_cast<std::uint32_t>(file));
}

// Binds the kernel's descriptor of the line. As in Linux, opening it may make it the session's
// terminal.
int bind_line(Turn& turn, long fd, std::uint16_t terminal, int flags) noexcept {
  if (fd < 0) return static_cast<int>(fd);
  const std::uint32_t file = dmt::open_line(turn.w, own_slot(), terminal);
  if (file == 0) {
    raw_syscall(SYS_close, fd);
    return -ENFILE;
  }
  turn.w.files[file].nonblocking = (flags & O_NONBLOCK) != 0;
  const bool takes = (flags & O_NOCTTY) == 0 && reads(flags);
  if (takes && turn.w.processes[self.process].terminal == 0 &&
      turn.w.terminals[terminal].session == 0 && dmt::leads_session(turn.w, self.process)) {
    dmt::become_controlling(turn.w, self.process, terminal);
  }
  return bind_new(turn, fd, file);
}

bool is_refused(const dmt::TerminalRecord& t) noexcept {
  return t.exclusive && raw_syscall(SYS_geteuid) != 0;
}

int open_named(Turn& turn, std::uint16_t terminal, int flags) noexcept {
  const dmt::TerminalRecord& t = turn.w.terminals[terminal];
  if (t.locked) return -EIO;
  if (is_refused(t)) return -EBUSY;
  char name[kNameBytes];
  write_name(name, t.kernel_number);
  return bind_line(turn, raw_syscall(SYS_openat, AT_FDCWD, name, flags | O_NOCTTY, 0), terminal,
                   flags);
}

// Returns a descriptor of this process for the same terminal; -1 = none.
int find_descriptor(const dmt::Layout& w, std::uint16_t terminal) noexcept {
  const std::uint32_t limit = w.processes[self.process].fd_limit;
  for (std::uint32_t fd = 0; fd < limit; ++fd) {
    const std::uint32_t file = terminal_file(static_cast<int>(fd));
    if (file != 0 && w.files[file].end.terminal == terminal) return static_cast<int>(fd);
  }
  return -1;
}

// Opens /dev/tty, which needs no permission and no path in /dev/pts, so any placeholder will do.
int open_controlling(Turn& turn, std::uint16_t terminal, int flags) noexcept {
  const dmt::TerminalRecord& t = turn.w.terminals[terminal];
  if (is_refused(t)) return -EBUSY;
  char name[kNameBytes];
  write_name(name, t.kernel_number);
  long fd = raw_syscall(SYS_openat, AT_FDCWD, name, flags | O_NOCTTY, 0);
  if (const int known = find_descriptor(turn.w, terminal); fd < 0 && known >= 0) {
    fd = raw_syscall(SYS_fcntl, known, (flags & O_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  }
  const int number = bind_line(turn, fd, terminal, flags | O_NOCTTY);
  if (number >= 0) bound_record(number)->end.is_controlling = true;
  return number;
}

// Called after a signal to the own group: runs the handlers, or the process stops. 0: try again.
int after_signal(Turn& turn, int fd, std::uint32_t file) noexcept {
  const std::uint32_t generation = turn.w.files[file].generation;
  if (!turn.interrupted(kRestarts)) return -EINTR;
  const bool same = bound_file(fd) == file && turn.w.files[file].generation == generation;
  return same ? 0 : -EBADF;
}

int ask(Turn& turn, int fd, std::uint32_t file, int signo) noexcept {
  for (;;) {
    const std::uint16_t terminal = turn.w.files[file].end.terminal;
    switch (dmt::ask_terminal(turn.w, own_slot(), terminal, signo)) {
      case dmt::Permission::kGranted:
        return 0;
      case dmt::Permission::kRefused:
        return -EIO;
      case dmt::Permission::kSignalled:
        break;
    }
    if (const int error = after_signal(turn, fd, file); error < 0) return error;
  }
}

// A read of the line: the terminal's modes decide how long it waits, and for how many bytes.
class LineRead {
 public:
  LineRead(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept
      : turn_(turn), fd_(fd), file_(file), cursor_(buffers), total_(buffers.total) {}
  ssize_t run() noexcept;

 private:
  FileRecord& file() noexcept { return turn_.w.files[file_]; }
  const dmt::TerminalModes& modes() noexcept { return record_of(turn_.w, file_).modes; }
  std::int64_t time_ns() noexcept {
    return std::int64_t{modes().characters[VTIME]} * kNsPerDecisecond;
  }
  std::size_t least() noexcept {
    return std::min<std::size_t>(std::max<std::size_t>(modes().characters[VMIN], 1), total_);
  }
  bool take() noexcept;
  int wait() noexcept;

  Turn& turn_;
  const int fd_;
  const std::uint32_t file_;
  Cursor cursor_;
  const std::size_t total_;
  std::size_t done_ = 0;
  std::int64_t deadline_ = dmt::kNoDeadline;
};

// Takes available bytes. True: the read is complete.
bool LineRead::take() noexcept {
  const std::uint16_t terminal = file().end.terminal;
  const bool canonical = dmt::is_canonical(modes());
  const Scratch<std::uint8_t> bytes(std::min(total_ - done_, kChunk));
  const std::size_t n = dmt::read_at_line(turn_.w, terminal, bytes.data(), bytes.size());
  cursor_.scatter(bytes.data(), n);
  done_ += n;
  if (canonical || done_ >= least()) return true;
  if (time_ns() > 0) deadline_ = deadline_after(turn_.w, time_ns());
  return false;
}

// Returns 1 when the time has expired.
int LineRead::wait() noexcept {
  if (file().nonblocking) return -EAGAIN;
  const WaitPolicy policy{false, true, deadline_};
  const int error = await_change(turn_, fd_, file_, policy);
  return error == -EAGAIN ? 1 : error;
}

ssize_t LineRead::run() noexcept {
  if (file().end.hung_up) return 0;
  if (const int error = ask(turn_, fd_, file_, SIGTTIN); error < 0) return error;
  const bool timed = !dmt::is_canonical(modes()) && modes().characters[VMIN] == 0;
  if (timed && time_ns() > 0) deadline_ = deadline_after(turn_.w, time_ns());
  for (;;) {
    if (file().end.hung_up) return static_cast<ssize_t>(done_);
    if (dmt::has_input(record_of(turn_.w, file_).discipline, modes(), 1)) {
      if (take()) return static_cast<ssize_t>(done_);
      continue;
    }
    if (timed && deadline_ == dmt::kNoDeadline) return static_cast<ssize_t>(done_);
    const int error = wait();
    if (error == 1) return static_cast<ssize_t>(done_);
    if (error < 0) return done_ > 0 ? static_cast<ssize_t>(done_) : error;
  }
}

std::size_t write_some(dmt::Layout& w, std::uint32_t file, const std::uint8_t* bytes,
                       std::size_t n) noexcept {
  const FileRecord& f = w.files[file];
  return f.kind == FileKind::kTerminalMaster ? dmt::write_at_master(w, f.end.terminal, bytes, n)
                                             : dmt::write_at_line(w, f.end.terminal, bytes, n);
}

}  // namespace

int open(Turn& turn, int directory, const char* path, int flags) noexcept {
  if (path == nullptr || std::strncmp(path, "/dev/", 5) != 0) return kNotTerminal;
  if ((flags & (O_PATH | O_DIRECTORY)) != 0) return kNotTerminal;
  if (is_master_name(path)) return open_master(turn, directory, path, flags);
  if (std::strcmp(path, "/dev/tty") == 0) {
    const std::uint16_t terminal = turn.w.processes[self.process].terminal;
    return terminal == 0 ? kNotTerminal : open_controlling(turn, terminal, flags);
  }
  std::uint32_t number;
  if (!parse_name(path, number)) return kNotTerminal;
  const std::uint16_t terminal = dmt::find_terminal(turn.w, number);
  if (terminal != 0) return open_named(turn, terminal, flags);
  return is_hidden(turn.w, number) ? -ENOENT : kNotTerminal;
}

int open_again(Turn& turn, int fd, const char*, int flags) noexcept {
  const FileRecord& f = *bound_record(fd);
  if (f.kind == FileKind::kTerminalMaster) return open_master(turn, AT_FDCWD, "/dev/ptmx", flags);
  const std::uint16_t terminal = f.end.terminal;
  return turn.w.terminals[terminal].has_master ? open_named(turn, terminal, flags) : -EIO;
}

int open_peer(Turn& turn, int fd, std::uint32_t file, int flags) noexcept {
  if (turn.w.files[file].kind != FileKind::kTerminalMaster) return -ENOTTY;
  const std::uint16_t terminal = turn.w.files[file].end.terminal;
  if (turn.w.terminals[terminal].locked) return -EIO;
  const long made = raw_syscall(SYS_ioctl, fd, TIOCGPTPEER, long{flags | O_NOCTTY});
  return bind_line(turn, made, terminal, flags);
}

ssize_t read_line(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept {
  return buffers.total == 0 ? 0 : LineRead(turn, fd, file, buffers).run();
}

ssize_t read_master(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept {
  if (buffers.total == 0) return 0;
  const WaitPolicy policy = tcp_socket::wait_policy_of(turn.w, file, 0, 0);
  const Scratch<std::uint8_t> bytes(std::min(buffers.total, kChunk));
  for (;;) {
    const std::uint16_t terminal = turn.w.files[file].end.terminal;
    const std::size_t n = dmt::read_at_master(turn.w, terminal, bytes.data(), bytes.size());
    if (n > 0) {
      Cursor cursor(buffers);
      cursor.scatter(bytes.data(), n);
      return static_cast<ssize_t>(n);
    }
    if (turn.w.terminals[terminal].line_closed) return -EIO;
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return error;
  }
}

ssize_t write(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept {
  const bool is_line = turn.w.files[file].kind == FileKind::kTerminalLine;
  if (is_line && turn.w.files[file].end.hung_up) return -EIO;
  if (is_line && (record_of(turn.w, file).modes.local & TOSTOP) != 0) {
    if (const int error = ask(turn, fd, file, SIGTTOU); error < 0) return error;
  }
  const WaitPolicy policy = tcp_socket::wait_policy_of(turn.w, file, 0, 0);
  Cursor cursor(buffers);
  std::size_t done = 0;
  while (done < buffers.total) {
    if (is_line && turn.w.files[file].end.hung_up) {
      return done > 0 ? static_cast<ssize_t>(done) : -EIO;
    }
    const Cursor::Piece piece = cursor.piece(buffers.total - done);
    const std::size_t n =
        write_some(turn.w, file, reinterpret_cast<const std::uint8_t*>(piece.data), piece.size);
    cursor.advance(n);
    done += n;
    if (n == piece.size) continue;
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return done > 0 ? static_cast<ssize_t>(done) : error;
  }
  return static_cast<ssize_t>(done);
}

int ask_to_change(Turn& turn, int fd, std::uint32_t file) noexcept {
  return ask(turn, fd, file, SIGTTOU);
}

// The inode numbers of Linux' devpts.
Identity identity_of_line(std::uint16_t terminal) noexcept {
  const std::uint32_t number = dmt::number_of(terminal);
  return {number + 3, makedev(kLineMajor, number)};
}

Identity identity_of(const dmt::Layout& w, std::uint32_t file) noexcept {
  const FileRecord& f = w.files[file];
  if (f.kind == FileKind::kTerminalMaster) return {2, makedev(kMasterMajor, kMasterMinor)};
  if (f.end.is_controlling) return {1, makedev(kMasterMajor, kTtyMinor)};
  return identity_of_line(f.end.terminal);
}

}  // namespace crane::terminal
