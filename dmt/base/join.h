// SPDX-License-Identifier: Apache-2.0
#pragma once
// Joins names for a message: "a, b, c".
//
// Threads: any.  Not for libcrane.so: it allocates.

#include <functional>
#include <string>

namespace crane {

// `text_of` returns the text of one element; without it the elements are text.
template <typename Range, typename TextOf = std::identity>
std::string joined(const Range& range, TextOf text_of = {}) {
  std::string text;
  for (const auto& one : range) {
    if (!text.empty()) text += ", ";
    text += std::invoke(text_of, one);
  }
  return text;
}

}  // namespace crane
