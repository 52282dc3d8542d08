// SPDX-License-Identifier: Apache-2.0
#pragma once
// Urgent data of TCP, as Linux has it: a connection has one mark, the last one.  The urgent byte
// lies in the input at its place.  Unless SO_OOBINLINE is set it is no part of the stream: a read
// that comes to it passes over it, recv(MSG_OOB) gets it before.  No read goes on over the mark.
//
// The mark comes with its byte: none is announced before.
//
// Threads / Processes: everything here REQUIRES the turn.

#include <cstddef>
#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// Bits of ConnectionState::urgent.  There is a mark: its byte waits for recv(MSG_OOB), or was got.
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
// .. and it is not in the stream.
inline bool is_at_hidden_byte(const ConnectionState& c) noexcept {
  return is_at_mark(c) && (c.urgent & kUrgentInline) == 0;
}

// FIONREAD: to the mark.
std::uint64_t unread_bytes(const ConnectionState& c) noexcept;

// The last byte of the input, which has just come, is urgent.  The owner gets SIGURG before its
// threads see the byte.
void note_urgent(Layout& w, std::uint32_t file) noexcept;
// Bytes were read: the mark may lie behind.
void forget_passed_mark(ConnectionState& c) noexcept;
// recv(MSG_OOB): the byte, or a negative error number.
int take_urgent(Layout& w, std::uint32_t file, bool peek) noexcept;
void set_urgent_inline(Layout& w, std::uint32_t file, bool on) noexcept;

}  // namespace crane::dmt
