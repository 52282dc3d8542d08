// SPDX-License-Identifier: Apache-2.0
#pragma once
// The line discipline of a pseudo-terminal.  It processes bytes from the master to the program that
// reads the line (line editing, signals, echo) and back (OPOST), as Linux' N_TTY does.  Pure: no
// process, descriptor or clock; results report what the caller must do.
//
// In canonical mode, readable bytes come before `ready` and the edited line comes after it.
//
// Threads: plain values; states in a Layout REQUIRE the turn.
//
// INVARIANT LINE-1  tail <= ready <= head <= tail + kLineBytes (as counts that wrap), and `ends`
//               has a bit only for bytes between tail and head.

#include <cstddef>
#include <cstdint>

namespace crane::dmt {

inline constexpr std::uint32_t kLineBytes = 4096;
inline constexpr std::size_t kControlCharacters = 19;

// The kernel's struct termios, used by TCGETS and TCSETS.
struct TerminalModes {
  std::uint32_t input, output, control, local;
  std::uint8_t line;
  std::uint8_t characters[kControlCharacters];
};

// The modes of a new pseudo-terminal in Linux.
TerminalModes usual_modes() noexcept;
bool is_canonical(const TerminalModes& m) noexcept;

struct LineState {
  std::uint32_t head, ready, tail;  // counts of bytes, modulo 2^32
  std::uint32_t column;             // of the output
  std::uint32_t line_column;        // of the output when the edited line began
  bool literal_next;                // the last byte was VLNEXT
  bool erasing;                     // inside the \.../ of ECHOPRT
  bool pushed;                      // canonical mode began with unread bytes, which are no line
  bool stopped;                     // VSTOP stopped the output
  bool held;                        // tcflow stopped the output: VSTART does not start it
  std::uint8_t bytes[kLineBytes];
  std::uint64_t ends[kLineBytes / 64];  // bit: a line ends with this byte
};

// The destination of output: echo, and the bytes from post_process.
struct OutputSink {
  void* context;
  void (*put)(void* context, std::uint8_t byte);
};

// How many more bytes the line accepts now.
std::uint32_t room_for_input(const LineState& l, const TerminalModes& m) noexcept;

// Processes one input byte.  REQUIRES: room_for_input.  Returns the signal that the byte causes, or
// 0.  The caller sends it and, unless NOFLSH is set, flushes.
int receive(LineState& l, const TerminalModes& m, std::uint8_t byte,
            const OutputSink& echo) noexcept;
// Echoes the byte that caused a signal; call it after the flush.
void echo_signal_byte(LineState& l, const TerminalModes& m, std::uint8_t byte,
                      const OutputSink& echo) noexcept;

// Whether a read finds input; in raw mode at least `least` bytes.
bool has_input(const LineState& l, const TerminalModes& m, std::uint32_t least) noexcept;
// The result of FIONREAD.
std::uint32_t unread_bytes(const LineState& l, const TerminalModes& m) noexcept;
// Performs one read: in canonical mode at most one line; an end of file is not copied.
std::size_t take_input(LineState& l, const TerminalModes& m, std::uint8_t* to,
                       std::size_t n) noexcept;
void flush_input(LineState& l) noexcept;

// Converts one byte of output under these modes into at most kOutputOfOneByte bytes.
inline constexpr std::size_t kOutputOfOneByte = 8;
void post_process(LineState& l, const TerminalModes& m, std::uint8_t byte,
                  const OutputSink& out) noexcept;

// Records that the modes were `before`: unread bytes change between lines and raw bytes.
void note_modes(LineState& l, const TerminalModes& before, const TerminalModes& now) noexcept;

}  // namespace crane::dmt
