// SPDX-License-Identifier: Apache-2.0
#include "dmt/outbound.h"

#include <cerrno>
#include <cstddef>

#include "dmt/base/assert.h"
#include "dmt/connections.h"
#include "dmt/files.h"
#include "dmt/sequence/output.h"

namespace crane::dmt {
namespace {

// The socket is as it was before connect(), and tells the error once.
void end_attempt(Layout& w, std::uint32_t file, std::int32_t error) noexcept {
  FileRecord& f = w.files[file];
  const ConnectionState attempt = f.connection;
  CRANE_ASSERT(attempt.connecting);
  unlink_connection(w, file);
  emit(w, OutputType::kClose, value(attempt.conn), 0, nullptr, 0);  // OUTBOUND-1
  f.kind = FileKind::kSocket;
  f.listener = {};
  f.listener.bound = attempt.local;
  f.listener.any_address = attempt.any_address;
  f.listener.connect_error = error;
  refresh_readiness(w, file, true);
}

}  // namespace

void begin_connect(Layout& w, std::uint32_t file, const VirtualAddress& peer,
                   const VirtualAddress& from) noexcept {
  FileRecord& f = w.files[file];
  CRANE_ASSERT(f.kind == FileKind::kSocket);
  const ListenerState before = f.listener;
  f.kind = FileKind::kConnection;
  f.connection = {};
  ConnectionState& c = f.connection;
  c.conn = ConnId{kOutboundBit | w.scheduler.clock};
  CRANE_ASSERT(find_connection(w, c.conn) == 0);  // a turn is one operation
  c.connecting = true;
  c.low_water = 1;
  c.peer = peer;
  c.local = before.bound;
  c.any_address = before.any_address;
  c.from = from;
  link_connection(w, file);
  const OutboundRequest request{peer, from};
  emit(w, OutputType::kConnect, value(c.conn), 0, reinterpret_cast<const std::byte*>(&request),
       sizeof request);
  refresh_readiness(w, file, false);
}

void give_up_connect(Layout& w, std::uint32_t file) noexcept { end_attempt(w, file, ECONNRESET); }

void admit_connected(Layout& w, const ConnectedBody& body) noexcept {
  const std::uint32_t file = find_connection(w, body.conn);
  if (file == 0 || !w.files[file].connection.connecting) return;
  if (body.error != 0) return end_attempt(w, file, body.error);
  ConnectionState& c = w.files[file].connection;
  c.connecting = false;
  c.local = body.local;
  c.socket = body.socket;
  c.table_slot = body.slot;
  refresh_readiness(w, file, true);
}

}  // namespace crane::dmt
