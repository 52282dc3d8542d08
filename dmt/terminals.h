// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pseudo-terminals: the bytes between their two ends, the master and the line (/dev/pts/N), what
// the line discipline makes of them (line_discipline.h), packet mode, and the ends' readiness.
// Wholly virtual: what a master writes has passed the line discipline when the write returns, and
// the signals that it causes are sent at that turn.  Sessions are in controlling_terminals.h.
//
// A place in the table is in use as long as a description of either end is open, as is Linux'
// number of the terminal; no line is opened once the master is closed.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT TTY-1  `files` links the open descriptions of both ends, `lines` of which are lines',
//               and at most one is the master's.
// INVARIANT TTY-2  `to_line` has bytes only while the discipline has no room for the next one.

#include <cstddef>
#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

inline constexpr std::uint32_t kTerminalQueueBytes = 64 * 1024;  // each way, beside the discipline
inline constexpr std::uint32_t kTerminalReadMost = kLineBytes - 1;

inline std::uint32_t number_of(std::uint16_t terminal) noexcept { return terminal - 1u; }

// --- descriptions --------------------------------------------------------------------------------

// A new terminal, locked, and the description of its master: a file, or a negative error number
// (-ENOSPC: no terminal is left, -ENFILE).
std::int64_t create_terminal(Layout& w, Slot me, std::uint32_t kernel_number) noexcept;
// A further description of the line; 0 = no file is left.  REQUIRES: has_master.
std::uint32_t open_line(Layout& w, Slot me, std::uint16_t terminal) noexcept;
// The terminal with that number whose master is open; 0 = none.
std::uint16_t find_terminal(const Layout& w, std::uint32_t number) noexcept;
// Whether the number is in use: of a terminal whose master is closed, too.
bool is_number_taken(const Layout& w, std::uint32_t number) noexcept;
// The terminal by the number of the kernel's placeholders, whether or not the master is open.
std::uint16_t find_terminal_by_kernel(const Layout& w, std::uint32_t kernel_number) noexcept;
// For files.cc: the last reference of a description drops.
void close_terminal_end(Layout& w, std::uint32_t file) noexcept;
Readiness terminal_readiness(const Layout& w, const FileRecord& f) noexcept;

// --- bytes ---------------------------------------------------------------------------------------

// What the end takes now of the bytes written to it, possibly nothing.
std::size_t write_at_master(Layout& w, std::uint16_t terminal, const std::uint8_t* bytes,
                            std::size_t n) noexcept;
std::size_t write_at_line(Layout& w, std::uint16_t terminal, const std::uint8_t* bytes,
                          std::size_t n) noexcept;
// What a read of the line finds now.
std::size_t read_at_line(Layout& w, std::uint16_t terminal, std::uint8_t* to,
                         std::size_t n) noexcept;
// A read of the master, in packet mode with the byte before.  0 = nothing is there.
std::size_t read_at_master(Layout& w, std::uint16_t terminal, std::uint8_t* to,
                           std::size_t n) noexcept;
std::uint32_t unread_by_master(const TerminalRecord& t) noexcept;
// TIOCSTI: a byte as if it had been typed, before what waits.
void insert_input(Layout& w, std::uint16_t terminal, bool at_master, std::uint8_t byte) noexcept;

// --- control -------------------------------------------------------------------------------------

// tcflush by one of the ends: unread input of its own, or what it has written.
void flush_unread(Layout& w, std::uint16_t terminal, bool at_master) noexcept;
void flush_written(Layout& w, std::uint16_t terminal, bool at_master) noexcept;
// TCSAFLUSH: what the line discipline has; what still waits before it comes next.
void flush_lines(Layout& w, std::uint16_t terminal) noexcept;
void set_modes(Layout& w, std::uint16_t terminal, const TerminalModes& modes) noexcept;
// The line's output stops or goes on, as by tcflow.
void hold_output(Layout& w, std::uint16_t terminal, bool held) noexcept;
void set_packet_mode(Layout& w, std::uint16_t terminal, bool on) noexcept;
// SIGWINCH to the foreground when the size is another one.
void set_window_size(Layout& w, std::uint16_t terminal, const WindowSize& size) noexcept;

}  // namespace crane::dmt
