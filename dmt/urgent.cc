// SPDX-License-Identifier: Apache-2.0
#include "dmt/urgent.h"

#include <cerrno>
#include <csignal>

#include "dmt/base/assert.h"
#include "dmt/connections.h"
#include "dmt/file_owners.h"
#include "dmt/files.h"

namespace crane::dmt {
namespace {

void ring_owner(Layout& w, std::uint32_t file) noexcept {
  SignalInfo info{};
  info.code = SI_KERNEL;
  send_to_owner(w, w.files[file].owner, SIGURG, info);
}

}  // namespace

std::uint64_t unread_bytes(const ConnectionState& c) noexcept {
  if (!has_mark(c) || (c.urgent & kUrgentInline) != 0) return c.received - c.consumed;
  return bytes_to_mark(c);
}

void note_urgent(Layout& w, std::uint32_t file) noexcept {
  ConnectionState& c = w.files[file].connection;
  CRANE_ASSERT(c.received > c.consumed);
  ring_owner(w, file);
  // As Linux: a byte whose mark is replaced by a later one stays in the stream, unless the reader
  // has reached it.
  if (is_at_hidden_byte(c)) drop_hidden_byte(w, file);
  c.urgent = static_cast<std::uint8_t>((c.urgent & kUrgentInline) | kUrgentUnread);
  c.urgent_at = static_cast<std::uint32_t>(c.received - 1);
}

void forget_passed_mark(ConnectionState& c) noexcept {
  if (has_mark(c) && static_cast<std::int32_t>(bytes_to_mark(c)) < 0) c.urgent &= kUrgentInline;
}

int take_urgent(Layout& w, std::uint32_t file, bool peek) noexcept {
  ConnectionState& c = w.files[file].connection;
  if ((c.urgent & kUrgentInline) != 0 || (c.urgent & kUrgentUnread) == 0) return -EINVAL;
  if (c.reset && !c.fin_received) return -ENOTCONN;
  const std::byte byte = input_byte(w, file, bytes_to_mark(c));
  if (!peek) {
    c.urgent = kUrgentRead;
    refresh_readiness(w, file, false);
  }
  return std::to_integer<int>(byte);
}

void set_urgent_inline(Layout& w, std::uint32_t file, bool on) noexcept {
  ConnectionState& c = w.files[file].connection;
  const unsigned others = c.urgent & ~static_cast<unsigned>(kUrgentInline);
  c.urgent = static_cast<std::uint8_t>(others | (on ? kUrgentInline : 0));
  refresh_readiness(w, file, false);
}

}  // namespace crane::dmt
