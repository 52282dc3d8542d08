// SPDX-License-Identifier: Apache-2.0
#pragma once
// The code of a process that runs, read from its memory: it may be in another container, where its
// files are not ours.
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
  // Objects as they are mapped now.  What cannot be read is missing.
  explicit ProcessCode(pid_t pid);
  ~ProcessCode();
  ProcessCode(const ProcessCode&) = delete;
  ProcessCode& operator=(const ProcessCode&) = delete;

  const Code* at(std::uint64_t address);

 private:
  struct Part {                                    // executable memory of a file
    std::uint64_t begin = 0, end = 0, object = 0;  // object: where its file's first byte is
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
