// SPDX-License-Identifier: Apache-2.0
#pragma once
// A turn as a reader wants it: which thread did what, about what, called from where.
//
// Threads: pure values.
//
// INVARIANT LIVE-V5  A place is told only for the process whose memory is known, the server's main
//               one: an address of another process may mean something else there.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dmt/sequence/turn_record.h"

namespace crane::proxy {

class TurnNames {
 public:
  // Names of operations by code, each ended by a 0.
  void set_operations(std::string_view names);
  // /proc/PID/maps of the server's main process.
  void set_maps(std::string maps) { maps_ = std::move(maps); }

  // The operation's name, or its code.
  std::string operation(std::uint32_t code) const;
  // Where in the code of the main process a return address is: file, offset in it and, when the
  // file has symbols, the function; empty: not known.
  std::string place(std::uint64_t address) const;
  std::string text(const TurnRecord& turn) const;

 private:
  std::vector<std::string> operations_;
  std::string maps_;
};

// The function of an ELF file that the byte at `offset` of it belongs to, as "name+0x1f"; empty:
// the file cannot be read, or says nothing about it.
std::string function_at(const std::string& path, std::uint64_t offset);

}  // namespace crane::proxy
