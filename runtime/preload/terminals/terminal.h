// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pseudo-terminals as descriptors (dmt/terminals.h has what they do).  The kernel's pair is the
// placeholder: both ends are really opened, so that they are terminals for libc and have an owner
// and a mode, but no byte goes through it and it controls no process (O_NOCTTY, always).
//
// A terminal is told of by its number in the segment, the lowest that is free, on every replica;
// the kernel's may be another one where the replicas share /dev/pts with the host.  So a path in
// /dev/pts that the program gives is one of ours by that number (path.h).
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include <climits>

#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/buffers.h"

namespace crane::terminal {

inline bool is_terminal(FileKind kind) noexcept {
  return kind == FileKind::kTerminalMaster || kind == FileKind::kTerminalLine;
}
// The file of a descriptor that is an end of a terminal of ours; 0 = it is not.
inline std::uint32_t terminal_file(int fd) noexcept {
  const std::uint32_t file = bound_file(fd);
  return file != 0 && is_terminal(without_turn().files[file].kind) ? file : 0;
}
inline dmt::TerminalRecord& record_of(dmt::Layout& w, std::uint32_t file) noexcept {
  return w.terminals[w.files[file].end.terminal];
}

// What open(2) does when the path names a terminal of ours or makes one; kNotTerminal otherwise.
inline constexpr int kNotTerminal = INT_MIN;
int open(Turn& turn, int directory, const char* path, int flags) noexcept;
// /dev/fd/N and its kin, of a terminal: the line once more.
int open_again(Turn& turn, int fd, const char* path, int flags) noexcept;
// TIOCGPTPEER.
int open_peer(Turn& turn, int fd, std::uint32_t file, int flags) noexcept;

ssize_t read_line(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;
ssize_t read_master(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;
ssize_t write(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;

// ioctl.
int control(Turn& turn, int fd, std::uint32_t file, unsigned long command, long x) noexcept;

// May this thread change the terminal?  As a write from the background with TOSTOP.  0, or -EIO or
// -EINTR.
int ask_to_change(Turn& turn, int fd, std::uint32_t file) noexcept;

// A line's device as the kernel writes it in words of 32 bits: major 136, then the number.
inline std::uint64_t device_number(std::uint16_t terminal) noexcept {
  const std::uint64_t number = terminal - 1u;
  return (number & 0xff) | 136u << 8 | (number >> 8) << 20;
}

// What stat says of an end: the file system that it is on, its inode, its device.
inline constexpr std::uint64_t kDevice = 0x18;
struct Identity {
  std::uint64_t inode, device;
};
Identity identity_of(const dmt::Layout& w, std::uint32_t file) noexcept;
Identity identity_of_line(std::uint16_t terminal) noexcept;

}  // namespace crane::terminal
