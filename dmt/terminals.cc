// SPDX-License-Identifier: Apache-2.0
#include "dmt/terminals.h"

#include <sys/ioctl.h>
#include <termios.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/blocks.h"
#include "dmt/byte_queue.h"
#include "dmt/controlling_terminals.h"
#include "dmt/files.h"
#include "dmt/wait_queues.h"

namespace crane::dmt {
namespace {

// The most that is queued for the master: one read that Linux keeps ready, plus one queue.
constexpr std::uint32_t kToMasterMost = kTerminalQueueBytes + kTerminalReadMost;
constexpr std::uint32_t kBlocksMost = kBlocksMax / 8 * 7;  // as for the server's own connections

constinit Bound terminals_bound{kTerminalsMax - 1, "pseudo-terminals",
                                "opening another fails (ENOSPC)"};
constinit Bound blocks_bound{kBlocksMost, "blocks of unread input",
                             "pseudo-terminals accept no more input for now"};

std::uint32_t room(const Layout& w, const ByteQueue& q, std::uint32_t most) noexcept {
  if (q.bytes >= most) return 0;
  if (fits(w, most - q.bytes, kBlocksMost)) return most - q.bytes;
  blocks_bound.count_refusal();
  return 0;
}

bool is_stopped(const TerminalRecord& t) noexcept {
  return t.discipline.stopped || t.discipline.held;
}

// --- readiness -----------------------------------------------------------------------------------

// The number of bytes at which a poll of the line reports it readable.
std::uint32_t least_of(const TerminalModes& m) noexcept {
  return m.characters[VTIME] == 0 ? m.characters[VMIN] : 1;
}

Readiness master_readiness(const Layout& w, const TerminalRecord& t) noexcept {
  const bool has_status = t.packet && t.packet_status != 0;
  return (t.to_master.bytes > 0 || has_status ? kIn : 0) | (has_status ? kPri : 0) |
         (room(w, t.to_line, kTerminalQueueBytes) > 0 ? kOut : 0) | (t.line_closed ? kHup : 0);
}

Readiness line_readiness(const Layout& w, const TerminalRecord& t, const TerminalEnd& e) noexcept {
  if (e.hung_up) return kIn | kOut | kErr | kHup;
  const bool takes = !is_stopped(t) && room(w, t.to_master, kToMasterMost) > kOutputOfOneByte;
  return (has_input(t.discipline, t.modes, least_of(t.modes)) ? kIn : 0) | (takes ? kOut : 0);
}

constexpr unsigned kNothing = 0, kByMaster = 1, kByLine = 2;

// Call after any change: wakes all waiters to check again; `gained` names the ends with an edge.
void refresh(Layout& w, std::uint16_t terminal, unsigned gained) noexcept {
  for (std::uint32_t f = w.terminals[terminal].files; f != 0; f = w.files[f].end.next) {
    const bool is_master = w.files[f].kind == FileKind::kTerminalMaster;
    refresh_readiness(w, f, (gained & (is_master ? kByMaster : kByLine)) != 0);
    signal(w, w.files[f].object, kAll);
  }
}

// --- the way of the bytes ------------------------------------------------------------------------

struct Echo {
  Layout* w;
  TerminalRecord* t;
};

// Echo without room is lost, as in Linux; while the output is stopped, echo waits.
void put_echo(void* context, std::uint8_t byte) noexcept {
  const Echo& e = *static_cast<const Echo*>(context);
  const bool waits = is_stopped(*e.t);
  ByteQueue& q = waits ? e.t->echo : e.t->to_master;
  if (room(*e.w, q, waits ? kLineBytes : kToMasterMost) > 0) append(*e.w, q, &byte, 1);
}

void note_packet(TerminalRecord& t, unsigned off, unsigned on) noexcept {
  if (t.packet) t.packet_status = static_cast<std::uint8_t>((t.packet_status & ~off) | on);
}

// Records whether the output stopped or resumed; `was_stopped` is the state before the event.
void note_flow(Layout& w, TerminalRecord& t, bool was_stopped) noexcept {
  if (is_stopped(t) == was_stopped) return;
  note_packet(t, was_stopped ? TIOCPKT_STOP : TIOCPKT_START,
              was_stopped ? TIOCPKT_START : TIOCPKT_STOP);
  if (!was_stopped) return;
  std::uint8_t byte;
  Echo echo{&w, &t};
  while (take(w, t.echo, &byte, 1) == 1) put_echo(&echo, byte);
}

void flush_line(TerminalRecord& t) noexcept {
  flush_input(t.discipline);
  note_packet(t, 0, TIOCPKT_FLUSHREAD);
}

// Drops what the line has written, except one read of the master, which Linux already has ready.
void flush_output(Layout& w, TerminalRecord& t) noexcept {
  cut(w, t.to_master, kTerminalReadMost);
  cut(w, t.echo, 0);
  note_packet(t, 0, TIOCPKT_FLUSHWRITE);
}

void take_byte(Layout& w, TerminalRecord& t, std::uint8_t byte) noexcept {
  Echo echo{&w, &t};
  const OutputSink sink{&echo, put_echo};
  const bool was_stopped = is_stopped(t);
  const int signo = receive(t.discipline, t.modes, byte, sink);
  if (signo != 0 && (t.modes.local & NOFLSH) == 0) {
    flush_output(w, t);
    flush_line(t);
  }
  note_flow(w, t, was_stopped);
  if (signo == 0) return;
  echo_signal_byte(t.discipline, t.modes, byte, sink);
  signal_group(w, t.group, signo);
}

// Moves bytes that wait for room into the discipline (TTY-2).
void pump(Layout& w, TerminalRecord& t) noexcept {
  std::uint8_t byte;
  while (t.to_line.bytes > 0 && room_for_input(t.discipline, t.modes) > 0) {
    take(w, t.to_line, &byte, 1);
    take_byte(w, t, byte);
  }
}

// --- descriptions --------------------------------------------------------------------------------

void link(Layout& w, std::uint32_t file, std::uint16_t terminal) noexcept {
  w.files[file].end = {terminal, false, false, w.terminals[terminal].files};
  w.terminals[terminal].files = file;
}

void unlink(Layout& w, std::uint32_t file) noexcept {
  std::uint32_t* at = &w.terminals[w.files[file].end.terminal].files;
  while (*at != file) {
    CRANE_ASSERT(*at != 0);  // TTY-1
    at = &w.files[*at].end.next;
  }
  *at = w.files[file].end.next;
}

// Ends every open description of the line: reads return EOF, writes EIO.
void hang_up_lines(Layout& w, const TerminalRecord& t) noexcept {
  for (std::uint32_t f = t.files; f != 0; f = w.files[f].end.next) {
    if (w.files[f].kind == FileKind::kTerminalLine) w.files[f].end.hung_up = true;
  }
}

void free_terminal(Layout& w, TerminalRecord& t) noexcept {
  cut(w, t.to_line, 0);
  cut(w, t.to_master, 0);
  cut(w, t.echo, 0);
  t.used = false;
}

}  // namespace

std::int64_t create_terminal(Layout& w, Slot me, std::uint32_t kernel_number) noexcept {
  std::uint16_t terminal = 1;
  while (terminal < kTerminalsMax && w.terminals[terminal].used) ++terminal;
  if (terminal == kTerminalsMax) {
    terminals_bound.count_refusal();
    return -ENOSPC;
  }
  TerminalRecord& t = w.terminals[terminal];
  std::memset(static_cast<void*>(&t), 0, sizeof t);
  t.modes = usual_modes();
  t.kernel_number = kernel_number;
  const std::uint32_t file = create_file(w, me, FileKind::kTerminalMaster);
  if (file == 0) return -ENFILE;
  t.used = t.has_master = t.locked = true;
  link(w, file, terminal);
  refresh_readiness(w, file, false);
  return file;
}

std::uint32_t open_line(Layout& w, Slot me, std::uint16_t terminal) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  CRANE_ASSERT(t.has_master);
  const std::uint32_t file = create_file(w, me, FileKind::kTerminalLine);
  if (file == 0) return 0;
  link(w, file, terminal);
  ++t.lines;
  t.line_closed = false;
  refresh(w, terminal, kNothing);
  return file;
}

std::uint16_t find_terminal(const Layout& w, std::uint32_t number) noexcept {
  if (number + 1 >= kTerminalsMax) return 0;
  const auto terminal = static_cast<std::uint16_t>(number + 1);
  return w.terminals[terminal].used && w.terminals[terminal].has_master ? terminal : 0;
}

bool is_number_taken(const Layout& w, std::uint32_t number) noexcept {
  return number + 1 < kTerminalsMax && w.terminals[number + 1].used;
}

std::uint16_t find_terminal_by_kernel(const Layout& w, std::uint32_t kernel_number) noexcept {
  for (std::uint16_t i = 1; i < kTerminalsMax; ++i) {
    if (w.terminals[i].used && w.terminals[i].kernel_number == kernel_number) return i;
  }
  return 0;
}

void close_terminal_end(Layout& w, std::uint32_t file) noexcept {
  const std::uint16_t terminal = w.files[file].end.terminal;
  TerminalRecord& t = w.terminals[terminal];
  unlink(w, file);
  if (w.files[file].kind == FileKind::kTerminalMaster) {
    t.has_master = false;
    cut(w, t.to_line, 0);
    hang_up_lines(w, t);
    hang_up_session(w, terminal);
  } else if (--t.lines == 0) {
    t.line_closed = true;
  }
  if (t.files == 0) return free_terminal(w, t);
  refresh(w, terminal, kByMaster | kByLine);
}

Readiness terminal_readiness(const Layout& w, const FileRecord& f) noexcept {
  if (f.end.terminal == 0) return 0;  // during creation
  const TerminalRecord& t = w.terminals[f.end.terminal];
  return f.kind == FileKind::kTerminalMaster ? master_readiness(w, t) : line_readiness(w, t, f.end);
}

// --- bytes ---------------------------------------------------------------------------------------

std::size_t write_at_master(Layout& w, std::uint16_t terminal, const std::uint8_t* bytes,
                            std::size_t n) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  const std::uint32_t echoed = t.to_master.bytes;
  std::size_t done = 0;
  while (done < n && t.to_line.bytes == 0 && room_for_input(t.discipline, t.modes) > 0) {
    take_byte(w, t, bytes[done++]);
  }
  const std::size_t waits =
      std::min<std::size_t>(n - done, room(w, t.to_line, kTerminalQueueBytes));
  append(w, t.to_line, bytes + done, waits);
  refresh(w, terminal, kByLine | (t.to_master.bytes > echoed ? kByMaster : 0));
  return done + waits;
}

std::size_t write_at_line(Layout& w, std::uint16_t terminal, const std::uint8_t* bytes,
                          std::size_t n) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  Echo echo{&w, &t};
  const OutputSink sink{&echo, put_echo};
  std::size_t done = 0;
  while (done < n && !is_stopped(t) && room(w, t.to_master, kToMasterMost) >= kOutputOfOneByte) {
    post_process(t.discipline, t.modes, bytes[done++], sink);
  }
  if (done > 0) refresh(w, terminal, kByMaster);
  return done;
}

std::size_t read_at_line(Layout& w, std::uint16_t terminal, std::uint8_t* to,
                         std::size_t n) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  const std::size_t done = take_input(t.discipline, t.modes, to, n);
  const std::uint32_t waited = t.to_line.bytes;
  const bool was_full = room(w, t.to_line, kTerminalQueueBytes) == 0;
  pump(w, t);
  refresh(w, terminal, (was_full ? kByMaster : 0) | (t.to_line.bytes < waited ? kByLine : 0));
  return done;
}

std::size_t read_at_master(Layout& w, std::uint16_t terminal, std::uint8_t* to,
                           std::size_t n) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  if (t.packet && t.packet_status != 0) {
    to[0] = t.packet_status;
    t.packet_status = 0;
    refresh(w, terminal, kNothing);
    return 1;
  }
  if (t.to_master.bytes == 0) return 0;
  const bool was_full = room(w, t.to_master, kToMasterMost) < kOutputOfOneByte;
  const std::size_t before = t.packet ? 1 : 0;
  if (before != 0) to[0] = TIOCPKT_DATA;
  const std::size_t most = std::min<std::size_t>(n - before, kTerminalReadMost);
  const std::size_t done = before + take(w, t.to_master, to + before, most);
  refresh(w, terminal, was_full ? kByLine : 0);
  return done;
}

std::uint32_t unread_by_master(const TerminalRecord& t) noexcept {
  return std::min(t.to_master.bytes, kTerminalReadMost);
}

void insert_input(Layout& w, std::uint16_t terminal, bool at_master, std::uint8_t byte) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  if (at_master) {
    if (room(w, t.to_master, kToMasterMost) > 0) append(w, t.to_master, &byte, 1);
  } else if (room_for_input(t.discipline, t.modes) > 0) {
    take_byte(w, t, byte);
  }
  refresh(w, terminal, kByMaster | kByLine);
}

// --- control -------------------------------------------------------------------------------------

void flush_unread(Layout& w, std::uint16_t terminal, bool at_master) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  if (at_master) {
    cut(w, t.to_master, 0);
  } else {
    cut(w, t.to_line, 0);
    flush_line(t);
  }
  refresh(w, terminal, kByMaster | kByLine);
}

void flush_lines(Layout& w, std::uint16_t terminal) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  flush_line(t);
  pump(w, t);
  refresh(w, terminal, kByMaster | kByLine);
}

void flush_written(Layout& w, std::uint16_t terminal, bool at_master) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  if (at_master) {
    cut(w, t.to_line, 0);
  } else {
    flush_output(w, t);
  }
  refresh(w, terminal, kByMaster | kByLine);
}

void set_modes(Layout& w, std::uint16_t terminal, const TerminalModes& modes) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  const TerminalModes before = t.modes;
  const bool was_stopped = is_stopped(t);
  t.modes = modes;
  t.modes.control = (modes.control & ~std::uint32_t{CSIZE | PARENB}) | CS8 | CREAD;
  note_modes(t.discipline, before, t.modes);
  const auto controls_flow = [](const TerminalModes& m) {
    return (m.input & IXON) != 0 && m.characters[VSTOP] == 19 && m.characters[VSTART] == 17;
  };
  if (const bool now = controls_flow(t.modes); now != controls_flow(before)) {
    note_packet(t, TIOCPKT_DOSTOP | TIOCPKT_NOSTOP, now ? TIOCPKT_DOSTOP : TIOCPKT_NOSTOP);
  }
  if (((before.local | t.modes.local) & EXTPROC) != 0) note_packet(t, 0, TIOCPKT_IOCTL);
  note_flow(w, t, was_stopped);
  pump(w, t);
  refresh(w, terminal, kByMaster | kByLine);
}

void hold_output(Layout& w, std::uint16_t terminal, bool held) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  const bool was_stopped = is_stopped(t);
  if (!held && t.discipline.held) t.discipline.stopped = false;
  t.discipline.held = held;
  note_flow(w, t, was_stopped);
  refresh(w, terminal, kByMaster | kByLine);
}

void set_packet_mode(Layout& w, std::uint16_t terminal, bool on) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  if (on && !t.packet) t.packet_status = 0;
  t.packet = on;
  refresh(w, terminal, kNothing);
}

void set_window_size(Layout& w, std::uint16_t terminal, const WindowSize& size) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  if (std::memcmp(&t.size, &size, sizeof size) == 0) return;
  t.size = size;
  signal_group(w, t.group, SIGWINCH);
}

}  // namespace crane::dmt
