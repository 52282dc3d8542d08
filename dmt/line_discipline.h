// SPDX-License-Identifier: Apache-2.0
#pragma once
// The discipline of a pseudo-terminal's line: what becomes of a byte on its way from the master to
// the program that reads the line (line editing, signals, echo) and back (OPOST), as Linux' N_TTY
// has it.  Pure: no process, no descriptor, no clock; what it wants of others it says in a result.
//
// A line that is being edited lies behind `ready`; in canonical mode what can be read lies before.
//
// Threads: plain values; those of a Layout REQUIRE the turn.
//
// INVARIANT LINE-1  tail <= ready <= head <= tail + kLineBytes (as counts that wrap), and `ends`
//               has a bit only for bytes between tail and head.

#include <cstddef>
#include <cstdint>

namespace crane::dmt {

inline constexpr std::uint32_t kLineBytes = 4096;
inline constexpr std::size_t kControlCharacters = 19;

// The kernel's struct termios, which TCGETS and TCSETS carry.
struct TerminalModes {
  std::uint32_t input, output, control, local;
  std::uint8_t line;
  std::uint8_t characters[kControlCharacters];
};

// What Linux gives a pseudo-terminal that is new.
TerminalModes usual_modes() noexcept;
bool is_canonical(const TerminalModes& m) noexcept;

struct LineState {
  std::uint32_t head, ready, tail;  // counts of bytes, modulo 2^32
  std::uint32_t column;             // where the output stands
  std::uint32_t line_column;        // where it stood when the line that is edited began
  bool literal_next;                // after VLNEXT
  bool erasing;                     // within the \.../ of ECHOPRT
  bool pushed;                      // canonical mode began with unread bytes: they are no line
  bool stopped;                     // the output, by VSTOP
  bool held;                        // the output, by tcflow: VSTART does not start it
  std::uint8_t bytes[kLineBytes];
  std::uint64_t ends[kLineBytes / 64];  // bit: a line ends with this byte
};

// Where output goes: echo, and what post_process makes.
struct OutputSink {
  void* context;
  void (*put)(void* context, std::uint8_t byte);
};

// How many further bytes the line takes now.
std::uint32_t room_for_input(const LineState& l, const TerminalModes& m) noexcept;

// A byte comes in.  REQUIRES: room_for_input.  The signal that it causes, or 0; the caller sends it
// and, unless NOFLSH is set, flushes.
int receive(LineState& l, const TerminalModes& m, std::uint8_t byte,
            const OutputSink& echo) noexcept;
// Echoes the byte that caused a signal: after the flush.
void echo_signal_byte(LineState& l, const TerminalModes& m, std::uint8_t byte,
                      const OutputSink& echo) noexcept;

// Whether a read finds something; in raw mode at least `least` bytes.
bool has_input(const LineState& l, const TerminalModes& m, std::uint32_t least) noexcept;
// What FIONREAD says.
std::uint32_t unread_bytes(const LineState& l, const TerminalModes& m) noexcept;
// One read: in canonical mode at most a line, whose end of file is no byte.
std::size_t take_input(LineState& l, const TerminalModes& m, std::uint8_t* to,
                       std::size_t n) noexcept;
void flush_input(LineState& l) noexcept;

// What one byte of output becomes with these modes: at most kOutputOfOneByte.
inline constexpr std::size_t kOutputOfOneByte = 8;
void post_process(LineState& l, const TerminalModes& m, std::uint8_t byte,
                  const OutputSink& out) noexcept;

// The modes were `before`; bytes that wait change between lines and raw bytes.
void note_modes(LineState& l, const TerminalModes& before, const TerminalModes& now) noexcept;

}  // namespace crane::dmt
