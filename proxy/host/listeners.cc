// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/listeners.h"

#include <utility>

namespace crane::node {

Listeners::Listeners(dmt::Layout& layout, proxy::Proxy& proxy, HostRole* host,
                     Supervisor& supervisor, Propose propose)
    : layout_(layout),
      proxy_(proxy),
      host_(host),
      supervisor_(supervisor),
      questions_(layout, {[this](std::uint16_t port) { return proxy_.has_listener(port); },
                          [this](std::uint16_t port) { return open_for_bind(port); },
                          std::move(propose)}) {}

void Listeners::open(std::uint16_t port, std::uint64_t backlog) {
  if (host_ != nullptr) {
    if (!proxy_.has_listener(port)) host_->open_listener(port, backlog);
    return;
  }
  if (proxy_.takes_clients(port)) return;
  supervisor_.listen(port, backlog);
}

void Listeners::open_all(bool tell_proxy) {
  for (std::uint32_t i = 1; i <= layout_.scheduler.files_used; ++i) {
    const dmt::FileRecord& f = layout_.files[i];
    if (f.kind != dmt::FileKind::kListener) continue;
    open(f.listener.port, f.listener.backlog);  // LISTEN-1
    if (!tell_proxy) continue;
    proxy_.output({OutputType::kListen, {}, f.listener.port, f.listener.backlog, 0}, {});
  }
}

// Without a crane-run the server gets its port, and the next one opens it.
std::optional<int> Listeners::open_for_bind(std::uint16_t port) {
  constexpr int kBacklog = 4096;  // bind names none; the kernel has a limit of its own
  if (host_ != nullptr) return host_->hold_port(port, kBacklog);
  if (!supervisor_.present()) return 0;
  supervisor_.listen_for_bind(port, kBacklog);
  return std::nullopt;
}

}  // namespace crane::node
