// SPDX-License-Identifier: Apache-2.0
#pragma once
// The frames of an operator's link (consensus/fabric/secure_link.h, kOperatorPlane): the number of
// bytes, 32 bits in network order, and then the text of one request or one answer.  The dialler
// sends one request; the node sends one answer and closes the link.
//
// Threads: pure functions.
// INVARIANT FRAME-1  A size above the reader's limit is refused as soon as it has arrived, so a
//                    reader never keeps more than the limit, the size, and one read.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace crane::control {

// Limits on a link.  The request's limit is that of the control socket (requests.cc).
inline constexpr std::size_t kLinkRequestMax = 4096;
inline constexpr std::size_t kLinkAnswerMax = 1 << 20;

// REQUIRES: text.size() <= kLinkAnswerMax.
void put_frame(std::vector<std::byte>& out, std::string_view text);

enum class Framed : std::uint8_t { kMore, kWhole, kTooLong };
// Reads the frame at the start of `in`.  kWhole: `text` is set.
Framed read_frame(std::span<const std::byte> in, std::size_t most, std::string& text);

}  // namespace crane::control
