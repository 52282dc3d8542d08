// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/stuck_watch.h"

#include <spdlog/spdlog.h>

#include "dmt/stuck.h"

namespace crane::node {

void StuckWatch::look(const dmt::Layout& w, bool runs, std::int64_t now_ns) {
  const std::uint64_t clock = w.scheduler.clock;
  const bool looks_so = runs && clock != 0 && dmt::is_stuck(w);
  if (!looks_so || clock_ != clock) {
    text_.clear();
    clock_ = looks_so ? clock : 0;
    since_ns_ = now_ns;
    return;
  }
  if (!text_.empty() || now_ns - since_ns_ < kBetweenNs) return;
  text_ = "no thread of the server can go on: ";
  char text[300];
  bool first = true;
  for (std::uint16_t i = dmt::next_waiting(w, 0); i != 0; i = dmt::next_waiting(w, i)) {
    dmt::describe_wait(w, i, text);
    spdlog::error("no thread of the server can go on: {}", text);
    if (first) text_ += text;
    first = false;
  }
  text_ += "; node.log names what each waits for";
}

}  // namespace crane::node
