// SPDX-License-Identifier: Apache-2.0
#pragma once
// A pseudo-terminal in the segment (layout.h).  Layout only; no logic.  DMT-L1 holds for all of it.

#include <cstdint>

#include "dmt/line_discipline.h"

namespace crane::dmt {

// A FIFO of bytes in blocks (byte_queue.h).
struct ByteQueue {
  std::uint32_t head_block, tail_block;
  std::uint32_t head_offset, tail_used;
  std::uint32_t bytes;
};

struct WindowSize {
  std::uint16_t rows, columns, width, height;  // as in struct winsize
};

// A pseudo-terminal; its number in /dev/pts is its index minus 1 (terminals.h).
struct TerminalRecord {
  bool used;
  bool has_master;
  bool locked;
  bool exclusive;
  bool packet;                  // TIOCPKT
  std::uint8_t packet_status;   // reported to the master next
  bool line_closed;             // the line was open and has no description now
  std::uint32_t lines;          // open descriptions of the line
  std::uint32_t files;          // open descriptions of both ends, linked by TerminalEnd::next
  std::uint32_t kernel_number;  // private to each replica: the placeholders in /dev/pts
  std::uint32_t session;        // the session that it controls, 0 = none
  std::uint32_t group;          // the foreground group, 0 = none
  TerminalModes modes;
  WindowSize size;
  LineState discipline;
  ByteQueue to_line;    // written by the master while the discipline has no room
  ByteQueue to_master;  // written by the line, and echo
  ByteQueue echo;       // waits because the output is stopped
};

}  // namespace crane::dmt
