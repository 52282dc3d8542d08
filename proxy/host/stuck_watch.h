// SPDX-License-Identifier: Apache-2.0
#pragma once
// Detects that all threads of the server wait for events that cannot come (dmt/stuck.h).  Two looks
// a second apart must find this at the same clock, because an event may still be on its way.
//
// Threads: the node's.

#include <cstdint>
#include <string>

#include "dmt/layout.h"

namespace crane::node {

class StuckWatch {
 public:
  static constexpr std::int64_t kBetweenNs = 1'000'000'000;

  // `runs`: the server runs.  A look that finds it stuck logs every thread in node.log.
  void look(const dmt::Layout& w, bool runs, std::int64_t now_ns);
  // Names what one of its threads waits for; empty: some thread can continue.
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::uint64_t clock_ = 0;  // of the first look that found it stuck; 0: none
  std::int64_t since_ns_ = 0;
};

}  // namespace crane::node
