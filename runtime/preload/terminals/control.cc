// SPDX-License-Identifier: Apache-2.0
// ioctl on the ends of pseudo-terminals: Linux' results, from the segment.
#include <asm/ioctls.h>
#include <termios.h>

#include <cstring>

#include "dmt/controlling_terminals.h"
#include "dmt/job_control.h"
#include "dmt/terminals.h"
#include "runtime/preload/terminals/terminal.h"

namespace crane::terminal {
namespace {

// The kernel's structures; libc's have other names or sizes.
struct OldModes {
  std::uint16_t input, output, control, local;
  std::uint8_t line;
  std::uint8_t characters[8];
};
struct TimedModes {
  dmt::TerminalModes modes;
  std::uint32_t input_speed, output_speed;
};
constexpr unsigned long kGetTimed = _IOR('T', 0x2A, TimedModes);
constexpr unsigned long kSetTimed = _IOW('T', 0x2B, TimedModes);
constexpr unsigned long kSetTimedWait = _IOW('T', 0x2C, TimedModes);
constexpr unsigned long kSetTimedFlush = _IOW('T', 0x2D, TimedModes);
constexpr std::uint32_t kUsualSpeed = 38400;

template <typename T>
T* at(long x) noexcept {
  return reinterpret_cast<T*>(x);
}
int give(long x, std::uint32_t value) noexcept {
  *at<int>(x) = static_cast<int>(value);
  return 0;
}

struct Call {
  Turn& turn;
  int fd;
  std::uint32_t file;
  long x;

  FileRecord& f() const noexcept { return turn.w.files[file]; }
  std::uint16_t terminal() const noexcept { return f().end.terminal; }
  dmt::TerminalRecord& t() const noexcept { return turn.w.terminals[terminal()]; }
  bool is_master() const noexcept { return f().kind == FileKind::kTerminalMaster; }
  dmt::ProcessRecord& process() const noexcept { return turn.w.processes[self.process]; }
};

// --- modes ---------------------------------------------------------------------------------------

int change_modes(const Call& c, const dmt::TerminalModes& modes, bool flushes) noexcept {
  if (const int error = ask_to_change(c.turn, c.fd, c.file); error < 0) return error;
  if (flushes) dmt::flush_lines(c.turn.w, c.terminal());
  dmt::set_modes(c.turn.w, c.terminal(), modes);
  return 0;
}

int get_old_modes(const Call& c) noexcept {
  const dmt::TerminalModes& m = c.t().modes;
  OldModes old{};
  old.input = static_cast<std::uint16_t>(m.input);
  old.output = static_cast<std::uint16_t>(m.output);
  old.control = static_cast<std::uint16_t>(m.control);
  old.local = static_cast<std::uint16_t>(m.local);
  old.line = m.line;
  std::memcpy(old.characters, m.characters, sizeof old.characters);
  *at<OldModes>(c.x) = old;
  return 0;
}

int set_old_modes(const Call& c, bool flushes) noexcept {
  constexpr std::uint32_t kOthers = 0xffff0000;
  const OldModes old = *at<const OldModes>(c.x);
  dmt::TerminalModes m = c.t().modes;
  m.input = (m.input & kOthers) | old.input;
  m.output = (m.output & kOthers) | old.output;
  m.control = (m.control & kOthers) | old.control;
  m.local = (m.local & kOthers) | old.local;
  m.line = old.line;
  std::memcpy(m.characters, old.characters, sizeof old.characters);
  return change_modes(c, m, flushes);
}

int of_modes(const Call& c, unsigned long command) noexcept {
  switch (command) {
    case TCGETS:
      *at<dmt::TerminalModes>(c.x) = c.t().modes;
      return 0;
    case TCSETS:
    case TCSETSW:
    case TCSETSF:
      return change_modes(c, *at<const dmt::TerminalModes>(c.x), command == TCSETSF);
    case TCGETA:
      return get_old_modes(c);
    case TCSETA:
    case TCSETAW:
    case TCSETAF:
      return set_old_modes(c, command == TCSETAF);
    case kGetTimed:
      *at<TimedModes>(c.x) = {c.t().modes, kUsualSpeed, kUsualSpeed};
      return 0;
    case kSetTimed:
    case kSetTimedWait:
    case kSetTimedFlush:
      return change_modes(c, at<const TimedModes>(c.x)->modes, command == kSetTimedFlush);
    default:
      return kNotTerminal;
  }
}

// --- sessions ------------------------------------------------------------------------------------

int take_session(const Call& c) noexcept {
  dmt::Layout& w = c.turn.w;
  dmt::ProcessRecord& p = c.process();
  const bool leads = dmt::leads_session(w, self.process);
  if (leads && c.t().session == p.session) return 0;
  if (!leads || p.terminal != 0) return -EPERM;
  const bool privileged = raw_syscall(SYS_geteuid) == 0;
  if (c.t().session != 0) {
    if (c.x != 1 || !privileged) return -EPERM;
    dmt::release_session(w, c.terminal());
  }
  dmt::become_controlling(w, self.process, c.terminal());
  return 0;
}

// Only processes that the terminal controls may query the line; any process may query the master.
bool may_ask(const Call& c) noexcept {
  return c.is_master() || c.process().terminal == c.terminal();
}

int set_group(const Call& c) noexcept {
  const int error = ask_to_change(c.turn, c.fd, c.file);
  if (error < 0) return error == -EIO ? -ENOTTY : error;
  return dmt::set_foreground(c.turn.w, self.process, c.terminal(), *at<const int>(c.x));
}

int of_session(const Call& c, unsigned long command) noexcept {
  switch (command) {
    case TIOCSCTTY:
      return take_session(c);
    case TIOCNOTTY:
      if (c.is_master() || c.process().terminal != c.terminal()) return -ENOTTY;
      dmt::leave_terminal(c.turn.w, self.process, false);
      return 0;
    case TIOCGPGRP:
      return may_ask(c) ? give(c.x, c.t().group) : -ENOTTY;
    case TIOCSPGRP:
      return set_group(c);
    case TIOCGSID:
      return may_ask(c) && c.t().session != 0 ? give(c.x, c.t().session) : -ENOTTY;
    case TIOCSIG:
      if (!c.is_master()) return -ENOTTY;
      if (c.x != SIGINT && c.x != SIGQUIT && c.x != SIGTSTP) return -EINVAL;
      dmt::signal_group(c.turn.w, c.t().group, static_cast<int>(c.x));
      return 0;
    default:
      return kNotTerminal;
  }
}

// --- bytes that wait -----------------------------------------------------------------------------

int flush(const Call& c) noexcept {
  if (c.x != TCIFLUSH && c.x != TCOFLUSH && c.x != TCIOFLUSH) return -EINVAL;
  if (const int error = ask_to_change(c.turn, c.fd, c.file); error < 0) return error;
  if (c.x != TCOFLUSH) dmt::flush_unread(c.turn.w, c.terminal(), c.is_master());
  if (c.x != TCIFLUSH) dmt::flush_written(c.turn.w, c.terminal(), c.is_master());
  return 0;
}

// tcflow: stops or starts the own output, or sends a character that requests it from the other
// side.
int control_flow(const Call& c) noexcept {
  if (const int error = ask_to_change(c.turn, c.fd, c.file); error < 0) return error;
  const std::uint8_t* characters = c.t().modes.characters;
  switch (c.x) {
    case TCOOFF:
    case TCOON:
      if (!c.is_master()) dmt::hold_output(c.turn.w, c.terminal(), c.x == TCOOFF);
      return 0;
    case TCIOFF:
    case TCION: {
      const std::uint8_t byte = characters[c.x == TCIOFF ? VSTOP : VSTART];
      if (byte != _POSIX_VDISABLE) {
        dmt::insert_input(c.turn.w, c.terminal(), !c.is_master(), byte);
      }
      return 0;
    }
    default:
      return -EINVAL;
  }
}

int insert(const Call& c) noexcept {
  const bool controls = !c.is_master() && c.process().terminal == c.terminal();
  if (!controls && raw_syscall(SYS_geteuid) != 0) return -EPERM;
  dmt::insert_input(c.turn.w, c.terminal(), c.is_master(), *at<const std::uint8_t>(c.x));
  return 0;
}

int of_bytes(const Call& c, unsigned long command) noexcept {
  switch (command) {
    case FIONREAD:
      return give(c.x, c.is_master() ? dmt::unread_by_master(c.t())
                                     : dmt::unread_bytes(c.t().discipline, c.t().modes));
    case TIOCOUTQ:
      return give(c.x, 0);  // as Linux: a pseudo-terminal's driver buffers nothing
    case TCFLSH:
      return flush(c);
    case TCXONC:
      return control_flow(c);
    case TCSBRK:
    case TCSBRKP:
    case TIOCSBRK:
      return ask_to_change(c.turn, c.fd, c.file);
    case TIOCCBRK:
      return 0;
    case TIOCSTI:
      return insert(c);
    default:
      return kNotTerminal;
  }
}

// --- the pair ------------------------------------------------------------------------------------

int of_master(const Call& c, unsigned long command) noexcept {
  if (!c.is_master()) return kNotTerminal;
  switch (command) {
    case TIOCGPTN:
      return give(c.x, dmt::number_of(c.terminal()));
    case TIOCSPTLCK:
      c.t().locked = *at<const int>(c.x) != 0;
      // Also unlocks the kernel's pair, because opening its line gives the placeholder.
      return static_cast<int>(raw_syscall(SYS_ioctl, c.fd, command, c.x));
    case TIOCGPTLCK:
      return give(c.x, c.t().locked ? 1 : 0);
    case TIOCGPTPEER:
      return open_peer(c.turn, c.fd, c.file, static_cast<int>(c.x));
    case TIOCPKT:
      dmt::set_packet_mode(c.turn.w, c.terminal(), *at<const int>(c.x) != 0);
      return 0;
    case TIOCGPKT:
      return give(c.x, c.t().packet ? 1 : 0);
    default:
      return kNotTerminal;
  }
}

int of_device(const Call& c, unsigned long command) noexcept {
  switch (command) {
    case TIOCGWINSZ:
      *at<dmt::WindowSize>(c.x) = c.t().size;
      return 0;
    case TIOCSWINSZ:
      dmt::set_window_size(c.turn.w, c.terminal(), *at<const dmt::WindowSize>(c.x));
      return 0;
    case TIOCEXCL:
    case TIOCNXCL:
      c.t().exclusive = command == TIOCEXCL;
      return 0;
    case TIOCGEXCL:
      return give(c.x, c.t().exclusive ? 1 : 0);
    case TIOCGETD:
      return give(c.x, N_TTY);
    case TIOCSETD:
      return *at<const int>(c.x) == N_TTY ? 0 : -EINVAL;
    case TIOCGDEV: {
      constexpr std::uint64_t kMasters = 8u << 8;  // the major number of masters is 128
      const std::uint64_t line = device_number(c.terminal());
      return give(c.x, static_cast<std::uint32_t>(c.is_master() ? line - kMasters : line));
    }
    case TIOCCONS:
    case TIOCVHANGUP:
      return -EPERM;
    default:
      return kNotTerminal;
  }
}

}  // namespace

int control(Turn& turn, int fd, std::uint32_t file, unsigned long command, long x) noexcept {
  const Call c{turn, fd, file, x};
  const bool hung_up = !c.is_master() && c.f().end.hung_up;
  if (hung_up && command != FIONBIO && command != FIOASYNC) {
    return command == TIOCSPGRP ? -ENOTTY : -EIO;
  }
  for (const auto part : {of_modes, of_session, of_bytes, of_master, of_device}) {
    if (const int answer = part(c, command); answer != kNotTerminal) return answer;
  }
  return kNotTerminal;
}

}  // namespace crane::terminal
