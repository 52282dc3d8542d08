// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/listeners.h"

#include "dmt/connections.h"
#include "proxy/clients/encode.h"

namespace crane::node {

Listeners::Listeners(dmt::Layout& layout, proxy::Proxy& proxy, HostRole* host,
                     Supervisor& supervisor, Proposals& proposals)
    : layout_(layout), proxy_(proxy), host_(host), supervisor_(supervisor), proposals_(proposals) {}

void Listeners::open(const Place& place, std::uint64_t backlog) {
  if (proxy_.is_covered(place)) return;
  proxy_.make_way(place);
  if (host_ != nullptr) {
    if (!proxy_.has_listener(place)) host_->open_listener(place, backlog);
    return;
  }
  if (proxy_.takes_clients(place)) return;
  supervisor_.listen(place, backlog);
}

void Listeners::open_all(bool notify_proxy) {
  for (std::uint32_t i = 1; i <= layout_.scheduler.files_used; ++i) {
    const dmt::FileRecord& f = layout_.files[i];
    if (f.kind != dmt::FileKind::kListener) continue;
    const ListenPlace place = dmt::place_of(f.listener);
    open(proxy::place_of(place), f.listener.backlog);  // LISTEN-1
    if (!notify_proxy) continue;
    proxy_.output({OutputType::kListen, {}, f.listener.port, f.listener.backlog, 0},
                  std::as_bytes(std::span(&place, 1)));
  }
}

// --- binds that wait ----------------------------------------------------------------------------

void Listeners::recover() {
  for (std::uint32_t file = 1; file <= layout_.scheduler.files_used; ++file) {
    const dmt::FileRecord& f = layout_.files[file];
    if (f.kind != dmt::FileKind::kSocket || f.listener.question == 0) continue;
    wanted(proxy::place_of(dmt::place_of(f.listener)), f.listener.question);
  }
}

void Listeners::step(bool leads, std::int64_t now_ns) {
  if (questions_.waiting().empty()) return;
  now_ns_ = now_ns;
  seen_.clear();
  for (const auto& [number, question] : questions_.waiting()) {
    seen_.push_back({number, socket_of(number), proxy_.has_listener(question.place)});
  }
  step(replica::ports::Tick{leads, seen_});
}

void Listeners::step(const replica::ports::Event& event) {
  questions_.step(event);
  loop_.run(questions_, [this](auto& action) { carry_out(action); });
}

void Listeners::carry_out(const replica::ports::Open& open) {
  step(replica::ports::Opened{open.question, open_for_bind(open.place)});
}

void Listeners::carry_out(const replica::ports::Propose& proposal) {
  const Result<Index> index = proposals_.propose(EntryType::kPort, proposals_.input_grant(),
                                                 proxy::bytes_of(proposal.body), now_ns_);
  step(replica::ports::Proposed{proposal.body.question, index.ok()});
}

// The socket whose bind waits; 0: none.  The server runs at the same time: a record that it changes
// during the search does not have this number.
std::uint32_t Listeners::socket_of(std::uint64_t question) const noexcept {
  const std::uint32_t used = __atomic_load_n(&layout_.scheduler.files_used, __ATOMIC_ACQUIRE);
  for (std::uint32_t file = 1; file <= used; ++file) {
    const dmt::FileRecord& f = layout_.files[file];
    if (__atomic_load_n(&f.kind, __ATOMIC_RELAXED) != dmt::FileKind::kSocket) continue;
    if (__atomic_load_n(&f.listener.question, __ATOMIC_RELAXED) == question) return file;
  }
  return 0;
}

// Without a crane-run, `bind` succeeds, and the next crane-run opens the port.
std::optional<int> Listeners::open_for_bind(const Place& place) {
  constexpr int kBacklog = 4096;  // bind passes no backlog; the kernel limits it
  proxy_.make_way(place);
  if (host_ != nullptr) return host_->hold_port(place, kBacklog);
  if (!supervisor_.present()) return 0;
  supervisor_.listen_for_bind(place, kBacklog);
  return std::nullopt;
}

}  // namespace crane::node
