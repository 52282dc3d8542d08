// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pseudo-terminals: the bytes between their two ends, the master and the line (/dev/pts/N), the
// line discipline (line_discipline.h), packet mode, and the readiness of the ends.  Wholly virtual:
// bytes that a master writes have passed the line discipline when the write returns, and the
// signals that they cause are sent at that turn.  Sessions are in controlling_terminals.h.
//
// A terminal's table entry, like its number in Linux, is in use while a description of either end
// is open.  After the master is closed no line can be opened.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT TTY-1  `files` links the open descriptions of both ends: `lines` of lines, and at most
//               one of the master.
// INVARIANT TTY-2  `to_line` has bytes only while the discipline has no room for the next one.

#include <cstddef>
#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

inline constexpr std::uint32_t kTerminalQueueBytes = 64 * 1024;  // per direction, in addition to
                                                                 // the discipline
inline constexpr std::uint32_t kTerminalReadMost = kLineBytes - 1;

inline std::uint32_t number_of(std::uint16_t terminal) noexcept { return terminal - 1u; }

// --- descriptions --------------------------------------------------------------------------------

// Creates a locked terminal and the description of its master.  Returns the file, or a negative
// error number (-ENOSPC: no terminal is free, -ENFILE).
std::int64_t create_terminal(Layout& w, Slot me, std::uint32_t kernel_number) noexcept;
// Opens another description of the line; 0 = no file is free.  REQUIRES: has_master.
std::uint32_t open_line(Layout& w, Slot me, std::uint16_t terminal) noexcept;
// The terminal with that number if its master is open; 0 = none.
std::uint16_t find_terminal(const Layout& w, std::uint32_t number) noexcept;
// Whether the number is in use, also by a terminal whose master is closed.
bool is_number_taken(const Layout& w, std::uint32_t number) noexcept;
// Finds the terminal by the number of its kernel placeholders, whether or not the master is open.
std::uint16_t find_terminal_by_kernel(const Layout& w, std::uint32_t kernel_number) noexcept;
// For files.cc: the last reference of a description drops.
void close_terminal_end(Layout& w, std::uint32_t file) noexcept;
Readiness terminal_readiness(const Layout& w, const FileRecord& f) noexcept;

// --- bytes ---------------------------------------------------------------------------------------

// Writes as many of the bytes as the end accepts now, possibly none.
std::size_t write_at_master(Layout& w, std::uint16_t terminal, const std::uint8_t* bytes,
                            std::size_t n) noexcept;
std::size_t write_at_line(Layout& w, std::uint16_t terminal, const std::uint8_t* bytes,
                          std::size_t n) noexcept;
// Reads what is readable at the line now.
std::size_t read_at_line(Layout& w, std::uint16_t terminal, std::uint8_t* to,
                         std::size_t n) noexcept;
// Reads at the master; in packet mode the status byte comes first.  0 = nothing to read.
std::size_t read_at_master(Layout& w, std::uint16_t terminal, std::uint8_t* to,
                           std::size_t n) noexcept;
std::uint32_t unread_by_master(const TerminalRecord& t) noexcept;
// TIOCSTI: inserts a byte as if it had been typed, before queued bytes.
void insert_input(Layout& w, std::uint16_t terminal, bool at_master, std::uint8_t byte) noexcept;

// --- control -------------------------------------------------------------------------------------

// tcflush by one of the ends: its unread input, or its written output.
void flush_unread(Layout& w, std::uint16_t terminal, bool at_master) noexcept;
void flush_written(Layout& w, std::uint16_t terminal, bool at_master) noexcept;
// TCSAFLUSH: flushes the line discipline; bytes queued before it come next.
void flush_lines(Layout& w, std::uint16_t terminal) noexcept;
void set_modes(Layout& w, std::uint16_t terminal, const TerminalModes& modes) noexcept;
// Stops or resumes the line's output, like tcflow.
void hold_output(Layout& w, std::uint16_t terminal, bool held) noexcept;
void set_packet_mode(Layout& w, std::uint16_t terminal, bool on) noexcept;
// Sends SIGWINCH to the foreground group if the size changes.
void set_window_size(Layout& w, std::uint16_t terminal, const WindowSize& size) noexcept;

}  // namespace crane::dmt
