// SPDX-License-Identifier: Apache-2.0
// libc's functions of terminals: ours from the segment, others by libc. For its own needs (is this
// stream a terminal?) libc queries the kernel's pair, which gives the same answer.
#include <cstring>

#include "dmt/terminals.h"
#include "runtime/preload/ground/fortify.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/terminals/path.h"
#include "runtime/preload/terminals/terminal.h"

namespace crane::wrap {
namespace {

using terminal::terminal_file;

// A function that consists of one ioctl.
int by_control(Op op, int fd, unsigned long command, long x) noexcept {
  Turn turn(op);
  const std::uint32_t file = terminal_file(fd);
  return finish_int(turn, file == 0 ? -EBADF : terminal::control(turn, fd, file, command, x));
}

int put_name(const char* name, char* b, size_t n) noexcept {
  const std::size_t size = std::strlen(name) + 1;
  if (size > n) {
    errno = ERANGE;
    return ERANGE;
  }
  std::memcpy(b, name, size);
  return 0;
}

// Writes the name of the line, which is the same as long as either end is open.
void name_line(int fd, char (&name)[terminal::kNameBytes]) noexcept {
  const std::uint32_t file = terminal_file(fd);
  terminal::write_name(name, dmt::number_of(without_turn().files[file].end.terminal));
}

// Returns 0 or an error number.
CRANE_REQUIRES_TURN int name_terminal(int fd, char (&name)[terminal::kNameBytes]) noexcept {
  const std::uint32_t file = terminal_file(fd);
  if (file == 0) return EBADF;
  const FileRecord& f = segment->files[file];
  if (f.kind == FileKind::kTerminalMaster) {
    std::strcpy(name, "/dev/ptmx");
  } else if (f.end.hung_up) {
    return EIO;
  } else if (f.end.is_controlling) {
    std::strcpy(name, "/dev/tty");
  } else {
    name_line(fd, name);
  }
  return 0;
}

bool is_master(int fd) noexcept {
  return without_turn().files[terminal_file(fd)].kind == FileKind::kTerminalMaster;
}

void to_kernel(const struct termios& t, dmt::TerminalModes& out) noexcept {
  constexpr tcflag_t kIbaud0 = 020000000000;  // libc's own bit: the input speed was set to 0
  out = {t.c_iflag & ~kIbaud0, t.c_oflag, t.c_cflag, t.c_lflag, t.c_line, {}};
  std::memcpy(out.characters, t.c_cc, sizeof out.characters);
}

void from_kernel(const dmt::TerminalModes& m, struct termios& out) noexcept {
  constexpr tcflag_t kSpeed = CBAUD | CBAUDEX;
  out = {};
  out.c_iflag = m.input;
  out.c_oflag = m.output;
  out.c_cflag = m.control;
  out.c_lflag = m.local;
  out.c_line = m.line;
  std::memcpy(out.c_cc, m.characters, sizeof m.characters);
  out.c_ispeed = out.c_ospeed = m.control & kSpeed;
}

}  // namespace

// --- pairs ---------------------------------------------------------------------------------------

int posix_openpt(int flags) { return wrap::open("/dev/ptmx", flags, 0); }
int getpt() { return wrap::posix_openpt(O_RDWR); }

int grantpt(int fd) {
  if (terminal_file(fd) == 0) return real::grantpt(fd);
  return is_master(fd) ? 0 : fail(EINVAL);
}

int unlockpt(int fd) {
  if (terminal_file(fd) == 0) return real::unlockpt(fd);
  if (!is_master(fd)) return fail(EINVAL);
  const int locked = 0;
  return by_control(Op::unlockpt, fd, TIOCSPTLCK, reinterpret_cast<long>(&locked));
}

int ptsname_r(int fd, char* b, size_t n) {
  if (terminal_file(fd) == 0) return real::ptsname_r(fd, b, n);
  char name[terminal::kNameBytes];
  if (!is_master(fd)) {
    errno = ENOTTY;
    return ENOTTY;
  }
  name_line(fd, name);
  return put_name(name, b, n);
}
int __ptsname_r_chk(int fd, char* b, size_t n, size_t room) {
  fortify::check_room(n, room);
  return wrap::ptsname_r(fd, b, n);
}

char* ptsname(int fd) {
  static char name[terminal::kNameBytes];
  return wrap::ptsname_r(fd, name, sizeof name) == 0 ? name : nullptr;
}

int openpty(int* m, int* s, char* name, const struct termios* t, const struct winsize* z) {
  const int master = wrap::posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0) return -1;
  const bool unlocked = wrap::unlockpt(master) == 0;
  const int line = unlocked ? wrap::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY) : -1;
  if (line < 0) {
    const int saved = errno;
    wrap::close(master);
    return fail(saved);
  }
  if (t != nullptr) wrap::tcsetattr(line, TCSAFLUSH, t);
  if (z != nullptr) wrap::ioctl(line, TIOCSWINSZ, reinterpret_cast<long>(z));
  *m = master;
  *s = line;
  if (name != nullptr) wrap::ptsname_r(master, name, terminal::kNameBytes);
  return 0;
}

int login_tty(int fd) {
  wrap::setsid();
  if (wrap::ioctl(fd, TIOCSCTTY, 0) < 0) return -1;
  for (int i = 0; i <= STDERR_FILENO; ++i) wrap::dup2(fd, i);
  if (fd > STDERR_FILENO) wrap::close(fd);
  return 0;
}

// --- queries -------------------------------------------------------------------------------------

int isatty(int fd) {
  if (terminal_file(fd) == 0) return real::isatty(fd);
  Turn turn(Op::isatty);
  char name[terminal::kNameBytes];
  const int error = name_terminal(fd, name);
  turn.result(error);
  if (error != 0) errno = error;
  return error == 0 ? 1 : 0;
}

int ttyname_r(int fd, char* b, size_t n) {
  if (terminal_file(fd) == 0) return real::ttyname_r(fd, b, n);
  Turn turn(Op::ttyname_r);
  char name[terminal::kNameBytes];
  const int error = name_terminal(fd, name);
  turn.result(error);
  if (error == 0) return put_name(name, b, n);
  errno = error;
  return error;
}
int __ttyname_r_chk(int fd, char* b, size_t n, size_t room) {
  fortify::check_room(n, room);
  return wrap::ttyname_r(fd, b, n);
}

char* ttyname(int fd) {
  static char name[terminal::kNameBytes];
  if (terminal_file(fd) == 0) return real::ttyname(fd);
  return wrap::ttyname_r(fd, name, sizeof name) == 0 ? name : nullptr;
}

// --- modes and bytes -----------------------------------------------------------------------------

int tcgetattr(int fd, struct termios* t) {
  if (terminal_file(fd) == 0) return real::tcgetattr(fd, t);
  dmt::TerminalModes m;
  const int result = by_control(Op::tcgetattr, fd, TCGETS, reinterpret_cast<long>(&m));
  if (result == 0) from_kernel(m, *t);
  return result;
}

int tcsetattr(int fd, int how, const struct termios* t) {
  if (terminal_file(fd) == 0) return real::tcsetattr(fd, how, t);
  if (how != TCSANOW && how != TCSADRAIN && how != TCSAFLUSH) return fail(EINVAL);
  dmt::TerminalModes m;
  to_kernel(*t, m);
  const unsigned long command = how == TCSANOW ? TCSETS : how == TCSADRAIN ? TCSETSW : TCSETSF;
  return by_control(Op::tcsetattr, fd, command, reinterpret_cast<long>(&m));
}

int tcsendbreak(int fd, int n) {
  if (terminal_file(fd) == 0) return real::tcsendbreak(fd, n);
  return by_control(Op::tcsendbreak, fd, TCSBRK, 0);
}
int tcdrain(int fd) {
  if (terminal_file(fd) == 0) return real::tcdrain(fd);
  return by_control(Op::tcdrain, fd, TCSBRK, 1);
}
int tcflush(int fd, int which) {
  if (terminal_file(fd) == 0) return real::tcflush(fd, which);
  return by_control(Op::tcflush, fd, TCFLSH, which);
}
int tcflow(int fd, int how) {
  if (terminal_file(fd) == 0) return real::tcflow(fd, how);
  return by_control(Op::tcflow, fd, TCXONC, how);
}

// --- sessions ------------------------------------------------------------------------------------

pid_t tcgetpgrp(int fd) {
  if (terminal_file(fd) == 0) return real::tcgetpgrp(fd);
  int group;
  const int result = by_control(Op::tcgetpgrp, fd, TIOCGPGRP, reinterpret_cast<long>(&group));
  return result < 0 ? -1 : group;
}
int tcsetpgrp(int fd, pid_t g) {
  if (terminal_file(fd) == 0) return real::tcsetpgrp(fd, g);
  return by_control(Op::tcsetpgrp, fd, TIOCSPGRP, reinterpret_cast<long>(&g));
}
pid_t tcgetsid(int fd) {
  if (terminal_file(fd) == 0) return real::tcgetsid(fd);
  int session;
  const int result = by_control(Op::tcgetsid, fd, TIOCGSID, reinterpret_cast<long>(&session));
  return result < 0 ? -1 : session;
}

// --- a password ----------------------------------------------------------------------------------

namespace {

// Reads a line without its newline, cut to the buffer; -1 = no byte.
ssize_t read_line(int fd, char* b, size_t n) noexcept {
  size_t size = 0;
  bool any = false;
  for (char c; wrap::read(fd, &c, 1) == 1;) {
    any = true;
    if (c == '\n') break;
    if (size + 1 < n) b[size++] = c;
  }
  b[size] = '\0';
  return any ? static_cast<ssize_t>(size) : -1;
}

}  // namespace

// Reads from the controlling terminal, or else from the standard streams.
char* getpass(const char* prompt) {
  static char password[512];
  const int tty = wrap::open("/dev/tty", O_RDWR | O_CLOEXEC, 0);
  const int in = tty >= 0 ? tty : STDIN_FILENO;
  const int out = tty >= 0 ? tty : STDERR_FILENO;
  struct termios before;
  const bool hides = wrap::tcgetattr(in, &before) == 0;
  if (hides) {
    struct termios hidden = before;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO | ISIG);
    wrap::tcsetattr(in, TCSAFLUSH, &hidden);
  }
  wrap::write(out, prompt, std::strlen(prompt));
  const ssize_t size = read_line(in, password, sizeof password);
  if (hides) {
    wrap::write(out, "\n", 1);
    wrap::tcsetattr(in, TCSAFLUSH, &before);
  }
  if (tty >= 0) wrap::close(tty);
  return size < 0 ? nullptr : password;
}

}  // namespace crane::wrap
