// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovered_clients.h"

#include <string>

#include "dmt/outbound.h"

namespace crane::node {

namespace {

// Visits the connections, except those of the server with itself.
template <typename Visit>
void for_each_connection(const dmt::Layout& layout, Visit&& visit) {
  for (std::uint32_t i = 1; i <= layout.scheduler.files_used; ++i) {
    const dmt::FileRecord& f = layout.files[i];
    if (f.kind == dmt::FileKind::kConnection && !f.connection.loopback) visit(f.connection);
  }
}

}  // namespace

void recover_clients(const dmt::Layout& layout, proxy::Proxy& proxy) {
  for_each_connection(layout, [&layout, &proxy](const dmt::ConnectionState& c) {
    const std::string path(dmt::socket_path(layout, c));
    if (c.connecting) return proxy.restore_attempt(c.conn, {{c.peer, c.from}, path});
    ConnectBody opened{};
    opened.port = c.local.port;
    opened.slot = c.table_slot;
    opened.peer = c.peer;
    opened.local = c.local;
    opened.socket = c.socket;
    opened.tcp = c.tcp;
    proxy.restore(
        c.conn, opened,
        {c.received, c.consumed, c.sent, c.drained, c.taken, c.fin_received, c.reset, c.shut_write},
        path);
  });
  for (const dmt::NameRecord& r : layout.names) {
    if (r.state == dmt::NameState::kAsked) proxy.restore_question(r.number, r.request);
  }
}

void reset_lost_clients(const dmt::Layout& layout, proxy::Proxy& proxy) {
  for_each_connection(layout, [&proxy](const dmt::ConnectionState& c) {
    if (!c.reset) proxy.reset_unless_known(c.conn);
  });
}

}  // namespace crane::node
