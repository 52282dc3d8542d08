// SPDX-License-Identifier: Apache-2.0
#pragma once
// A turn as text for a reader: thread, operation, object and caller.
//
// Threads: pure values.
//
// INVARIANT LIVE-V5  A place in the code is named only for the process whose memory map is known,
//                    the server's main process: an address of another process may mean something
//                    else.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dmt/sequence/turn_record.h"

namespace crane::proxy {

class TurnNames {
 public:
  // Names of operations by code, each terminated by a 0.
  void set_operations(std::string_view names);
  // /proc/PID/maps of the server's main process.
  void set_maps(std::string maps) { maps_ = std::move(maps); }

  // The operation's name, or its code.
  std::string operation(std::uint32_t code) const;
  // The place of a return address in the code of the main process: file, offset and, if the file
  // has symbols, function; empty: unknown.
  std::string place(std::uint64_t address) const;
  std::string text(const TurnRecord& turn) const;

 private:
  std::vector<std::string> operations_;
  std::string maps_;
};

// The function that contains the byte at `offset` of an ELF file, as "name+0x1f"; empty: the file
// cannot be read, or has no such symbol.
std::string function_at(const std::string& path, std::uint64_t offset);

}  // namespace crane::proxy
