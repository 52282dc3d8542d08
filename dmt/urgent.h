// SPDX-License-Identifier: Apache-2.0
#pragma once
// TCP urgent data, as in Linux: a connection has one mark, the latest.  The urgent byte is at its
// place in the input.  Unless SO_OOBINLINE is set, it is not part of the stream: recv(MSG_OOB)
// returns it, and a read that reaches it skips it.  A single read never crosses the mark.
//
// The mark arrives with its byte, never earlier.
//
// Threads / Processes: everything here REQUIRES the turn.

#include <cstddef>
#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// Bits of ConnectionState::urgent: there is a mark, and recv(MSG_OOB) has not yet, or has, read its
// byte.
inline constexpr std::uint8_t kUrgentUnread = 1, kUrgentRead = 2;
// SO_OOBINLINE.
inline constexpr std::uint8_t kUrgentInline = 4;

inline bool has_mark(const ConnectionState& c) noexcept {
  return (c.urgent & (kUrgentUnread | kUrgentRead)) != 0;
}
// Bytes before the urgent one.  REQUIRES: has_mark.
inline std::uint32_t bytes_to_mark(const ConnectionState& c) noexcept {
  return c.urgent_at - static_cast<std::uint32_t>(c.consumed);
}
// SIOCATMARK: the next byte is the urgent one.
inline bool is_at_mark(const ConnectionState& c) noexcept {
  return has_mark(c) && bytes_to_mark(c) == 0;
}
// The next byte is the urgent one, and it is not in the stream.
inline bool is_at_hidden_byte(const ConnectionState& c) noexcept {
  return is_at_mark(c) && (c.urgent & kUrgentInline) == 0;
}

// FIONREAD: the bytes up to the mark.
std::uint64_t unread_bytes(const ConnectionState& c) noexcept;

// Marks the last byte of the input, which has just arrived, as urgent.  The owner gets SIGURG
// before its threads see the byte.
void note_urgent(Layout& w, std::uint32_t file) noexcept;
// Called after a read, which may have passed the mark.
void forget_passed_mark(ConnectionState& c) noexcept;
// recv(MSG_OOB): returns the byte, or a negative error number.
int take_urgent(Layout& w, std::uint32_t file, bool peek) noexcept;
void set_urgent_inline(Layout& w, std::uint32_t file, bool on) noexcept;

}  // namespace crane::dmt
