// SPDX-License-Identifier: Apache-2.0
#include "proxy/record/alarms.h"

#include <algorithm>
#include <utility>

namespace crane::proxy {

void Alarms::agreed(std::uint64_t index) {
  if (restarted_from_ == 0) {
    unbroken_ = index;  // LIVE-A1
  } else if (index > restarted_from_) {
    since_ = index;
  }
}

void Alarms::raised(std::string what, std::uint64_t index, const std::string& when) {
  if (count_++ == 0) {
    first_when_ = when;
    first_index_ = index;
  }
  last_ = std::move(what);
  over_ = false;
}

void Alarms::restart_from(std::uint64_t index) {
  restarted_from_ = index;
  since_ = 0;
}

std::uint64_t Alarms::verified() const noexcept { return std::max(unbroken_, since_); }

std::string Alarms::text() const {
  if (none()) return "";
  std::string text = last_ + "; differences: " + std::to_string(count_) + ", since " + first_when_ +
                     " (log index " + std::to_string(first_index_) + ")";
  if (over_) return text + "; all voters are equal again";
  if (restarted_from_ == 0) return text;
  text += "; compared again from log index " + std::to_string(restarted_from_) + ": ";
  return text + (since_ == 0 ? "nothing yet" : "equal up to " + std::to_string(since_));
}

void Alarms::restore(std::uint64_t unbroken, std::uint64_t restarted_from) noexcept {
  unbroken_ = unbroken;
  restarted_from_ = restarted_from;
  since_ = 0;
}

}  // namespace crane::proxy
