// SPDX-License-Identifier: Apache-2.0
#include "dmt/outbound.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/blocks.h"
#include "dmt/connections.h"
#include "dmt/files.h"
#include "dmt/sequence/output.h"

namespace crane::dmt {
namespace {

// Restores the socket to its state before connect(); it reports the error once.
void end_attempt(Layout& w, std::uint32_t file, std::int32_t error) noexcept {
  FileRecord& f = w.files[file];
  const ConnectionState attempt = f.connection;
  CRANE_ASSERT(attempt.connecting);
  unlink_connection(w, file);
  emit(w, OutputType::kClose, value(attempt.conn), 0, nullptr, 0);  // OUTBOUND-1
  if (attempt.path_block != 0) free_block(w, attempt.path_block);
  f.kind = attempt.path_block != 0 ? FileKind::kUnixSocket : FileKind::kSocket;
  if (f.kind == FileKind::kUnixSocket) f.port = SOCK_STREAM;
  f.listener = {};
  f.listener.bound = attempt.local;
  f.listener.any_address = attempt.any_address;
  f.listener.connect_error = error;
  refresh_readiness(w, file, true);
}

ConnectionState& begin(Layout& w, std::uint32_t file, const OutboundRequest& request) noexcept {
  FileRecord& f = w.files[file];
  const ListenerState before = f.listener;
  f.kind = FileKind::kConnection;
  f.connection = {};
  ConnectionState& c = f.connection;
  c.conn = ConnId{kOutboundBit | w.scheduler.clock};
  CRANE_ASSERT(find_connection(w, c.conn) == 0);  // a turn is one operation
  c.connecting = true;
  c.low_water = 1;
  c.peer = request.peer;
  c.local = before.bound;
  c.any_address = before.any_address;
  c.from = request.local;
  link_connection(w, file);
  return c;
}

}  // namespace

void begin_connect(Layout& w, std::uint32_t file, const VirtualAddress& peer,
                   const VirtualAddress& from) noexcept {
  CRANE_ASSERT(w.files[file].kind == FileKind::kSocket);
  const OutboundRequest request{peer, from};
  const ConnectionState& c = begin(w, file, request);
  emit(w, OutputType::kConnect, value(c.conn), 0, reinterpret_cast<const std::byte*>(&request),
       sizeof request);
  refresh_readiness(w, file, false);
}

namespace {

void begin_by_path(Layout& w, std::uint32_t file, std::string_view path, std::uint16_t kind,
                   std::uint16_t port) noexcept {
  CRANE_ASSERT(w.files[file].kind == FileKind::kUnixSocket);
  CRANE_ASSERT(!path.empty() && path.size() <= kSocketPathBytes);
  OutboundRequest request{};
  request.peer.family = request.local.family = AF_UNIX;
  request.peer.port = kind;
  ConnectionState& c = begin(w, file, request);
  w.files[file].port = port;
  c.path_block = allocate_block(w);
  auto* const kept = reinterpret_cast<char*>(block_bytes(w, c.path_block));
  std::memcpy(kept, path.data(), path.size());
  kept[path.size()] = '\0';
  std::byte record[sizeof request + kSocketPathBytes];
  std::memcpy(record, &request, sizeof request);
  std::memcpy(record + sizeof request, path.data(), path.size());
  emit(w, OutputType::kConnect, value(c.conn), 0, record,
       static_cast<std::uint32_t>(sizeof request + path.size()));
  refresh_readiness(w, file, false);
}

}  // namespace

void begin_unix_connect(Layout& w, std::uint32_t file, std::string_view path) noexcept {
  begin_by_path(w, file, path, 0, AF_UNIX);
}

void begin_fifo_open(Layout& w, std::uint32_t file, std::string_view path) noexcept {
  begin_by_path(w, file, path, kFifoToRead, kHostFifo);
}

std::string_view socket_path(const Layout& w, const ConnectionState& c) noexcept {
  if (c.path_block == 0) return {};
  return reinterpret_cast<const char*>(block_bytes(w, c.path_block));
}

void give_up_connect(Layout& w, std::uint32_t file) noexcept { end_attempt(w, file, ECONNRESET); }

void admit_connected(Layout& w, const ConnectedBody& body) noexcept {
  const std::uint32_t file = find_connection(w, body.conn);
  if (file == 0 || !w.files[file].connection.connecting) return;
  ConnectionState& c = w.files[file].connection;
  if (body.error != 0 && !is_host_fifo(w.files[file])) return end_attempt(w, file, body.error);
  c.connecting = false;
  if (body.error != 0) {
    c.socket_error = body.error;
    c.fin_received = true;
  }
  c.local = body.local;
  c.socket = body.socket;
  c.table_slot = body.slot;
  refresh_readiness(w, file, true);
}

}  // namespace crane::dmt
