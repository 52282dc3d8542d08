// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pseudo-terminals as descriptors (dmt/terminals.h implements them). The kernel's pair is the
// placeholder. Both ends are really opened, so libc recognises terminals and they have an owner and
// a mode. But no byte goes through the pair, and it controls no process (always O_NOCTTY).
//
// On every replica, a terminal's number is its number in the segment, the lowest that is free. The
// kernel's number may differ if the replicas share /dev/pts with the host. So a path in /dev/pts
// that the program uses means the agreed number (path.h).
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include <climits>

#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/buffers.h"

namespace crane::terminal {

inline bool is_terminal(FileKind kind) noexcept {
  return kind == FileKind::kTerminalMaster || kind == FileKind::kTerminalLine;
}
// Returns the file of a descriptor that is an end of a terminal of ours; 0 = none.
inline std::uint32_t terminal_file(int fd) noexcept {
  const std::uint32_t file = bound_file(fd);
  return file != 0 && is_terminal(without_turn().files[file].kind) ? file : 0;
}
inline dmt::TerminalRecord& record_of(dmt::Layout& w, std::uint32_t file) noexcept {
  return w.terminals[w.files[file].end.terminal];
}

// Does open(2) if the path names a terminal of ours or creates one; returns kNotTerminal otherwise.
inline constexpr int kNotTerminal = INT_MIN;
int open(Turn& turn, int directory, const char* path, int flags) noexcept;
// Opens /dev/fd/N and the like for a terminal: the line again.
int open_again(Turn& turn, int fd, const char* path, int flags) noexcept;
// TIOCGPTPEER.
int open_peer(Turn& turn, int fd, std::uint32_t file, int flags) noexcept;

ssize_t read_line(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;
ssize_t read_master(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;
ssize_t write(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;

// ioctl.
int control(Turn& turn, int fd, std::uint32_t file, unsigned long command, long x) noexcept;

// Checks whether this thread may change the terminal, as a write from the background with TOSTOP.
// 0, or -EIO or -EINTR.
int ask_to_change(Turn& turn, int fd, std::uint32_t file) noexcept;

// A line's device in the kernel's 32-bit form: major 136, then the number.
inline std::uint64_t device_number(std::uint16_t terminal) noexcept {
  const std::uint64_t number = terminal - 1u;
  return (number & 0xff) | 136u << 8 | (number >> 8) << 20;
}

// The values of stat for an end: the file system's device, the inode, the own device.
inline constexpr std::uint64_t kDevice = 0x18;
struct Identity {
  std::uint64_t inode, device;
};
Identity identity_of(const dmt::Layout& w, std::uint32_t file) noexcept;
Identity identity_of_line(std::uint16_t terminal) noexcept;

}  // namespace crane::terminal
