// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/recovered_clients.h"

namespace crane::node {

void recover_clients(const dmt::Layout& layout, proxy::Proxy& proxy) {
  for (std::uint32_t i = 1; i <= layout.scheduler.files_used; ++i) {
    const dmt::FileRecord& f = layout.files[i];
    if (f.kind != dmt::FileKind::kConnection || f.connection.loopback) continue;
    const dmt::ConnectionState& c = f.connection;
    if (c.connecting) {
      proxy.wait_for_outcome(c.conn, {c.peer, c.from});
      continue;
    }
    ConnectBody opened{};
    opened.port = c.local.port;
    opened.slot = c.table_slot;
    opened.peer = c.peer;
    opened.local = c.local;
    opened.socket = c.socket;
    proxy.restore(
        c.conn, opened,
        {c.received, c.consumed, c.sent, c.drained, c.fin_received, c.reset, c.shut_write});
  }
}

void reset_lost_clients(const dmt::Layout& layout, proxy::Proxy& proxy) {
  for (std::uint32_t i = 1; i <= layout.scheduler.files_used; ++i) {
    const dmt::FileRecord& f = layout.files[i];
    if (f.kind != dmt::FileKind::kConnection || f.connection.loopback || f.connection.reset) {
      continue;
    }
    proxy.reset_unless_known(f.connection.conn);
  }
}

}  // namespace crane::node
