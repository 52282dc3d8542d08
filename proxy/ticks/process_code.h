// SPDX-License-Identifier: Apache-2.0
#pragma once
// The code of a running process, read from its memory, because its files may be in another
// container and not visible to the node.
//
// Threads: one object, one thread.

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "proxy/ticks/choose.h"

namespace crane::ticks {

class ProcessCode {
 public:
  // Uses the objects that are mapped now; unreadable ones are missing.
  explicit ProcessCode(pid_t pid);
  ~ProcessCode();
  ProcessCode(const ProcessCode&) = delete;
  ProcessCode& operator=(const ProcessCode&) = delete;

  const Code* at(std::uint64_t address);

 private:
  struct Part {                                    // executable memory of a file
    std::uint64_t begin = 0, end = 0, object = 0;  // object: address of its file's first byte
    std::string name;
    bool is_read = false;
    std::vector<unsigned char> bytes;
    Code code;
  };

  bool read(std::uint64_t address, void* out, std::size_t bytes) const;
  void read_object(Part& part) const;
  std::uint64_t build_of(std::uint64_t notes, std::size_t bytes) const;

  int memory_ = -1;
  std::deque<Part> parts_;
};

}  // namespace crane::ticks
