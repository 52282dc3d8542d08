// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether all threads of the server wait for what can never come (dmt/stuck.h), as seen from look
// to look: two of them at one clock, a second apart, because between them something may have been
// on its way.
//
// Threads: the node's.

#include <cstdint>
#include <string>

#include "dmt/layout.h"

namespace crane::node {

class StuckWatch {
 public:
  static constexpr std::int64_t kBetweenNs = 1'000'000'000;

  // `runs`: the server does.  The look that finds it stuck says so in node.log, thread by thread.
  void look(const dmt::Layout& w, bool runs, std::int64_t now_ns);
  // What one of its threads waits for; empty: some can go on.
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::uint64_t clock_ = 0;  // of the first look that found it so; 0: none did
  std::int64_t since_ns_ = 0;
};

}  // namespace crane::node
