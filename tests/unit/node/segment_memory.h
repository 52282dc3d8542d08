// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fresh segment in this process's memory, shared like the real one, for tests that play the
// server.

#include <sys/mman.h>

#include "dmt/layout.h"
#include "dmt/segment.h"

namespace crane::node::test {

class SegmentMemory {
 public:
  explicit SegmentMemory(const dmt::Configuration& c = serial())
      : memory_(::mmap(nullptr, sizeof(dmt::Layout), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
        w(dmt::initialise_segment(memory_, c)) {}
  ~SegmentMemory() { ::munmap(memory_, sizeof(dmt::Layout)); }
  SegmentMemory(const SegmentMemory&) = delete;
  SegmentMemory& operator=(const SegmentMemory&) = delete;

  static dmt::Configuration serial() {
    dmt::Configuration c{};
    c.mode = dmt::Mode::kSerial;
    c.admission = dmt::Admission::kGrant;
    c.quantum = 1;
    c.send_buffer = dmt::kSendBufferDefault;
    return c;
  }

 private:
  void* memory_;

 public:
  dmt::Layout& w;
};

}  // namespace crane::node::test
