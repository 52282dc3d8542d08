// SPDX-License-Identifier: Apache-2.0
// Clients whose sockets the nodes of one host share: another node of it leads, and goes on with
// them.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "dmt/base/assert.h"
#include "proxy/clients/encode.h"
#include "proxy/clients/server.h"
#include "proxy/clients/tuning.h"

namespace crane::proxy {
namespace {

constexpr timeval kAgain{1, 0};  // where no keeper could be started

}  // namespace

void Proxy::share(std::unique_ptr<SharedSockets> sockets) {
  shared_ = std::move(sockets);
  watch_keeper();
}

void Proxy::watch_keeper() {
  const int fd = shared_->keeper_fd();
  event_assign(&keeper_event_, base_, fd, static_cast<short>(fd < 0 ? EV_TIMEOUT : EV_READ),
               on_keeper_end, this);
  event_add(&keeper_event_, fd < 0 ? &kAgain : nullptr);
}

void Proxy::on_keeper_end(int, short, void* argument) {
  Proxy& proxy = *static_cast<Proxy*>(argument);
  proxy.on_event_();
  proxy.shared_->replace_keeper();
  proxy.watch_keeper();
}

// A replica need not keep what the leader has put into the socket.
void Proxy::trim(Client& client) {
  if (!shared_ || client.queued() < client.look_at + kTailLook) return;
  const QueueChange change(*this, client);
  if (const auto put = shared_->table().put_of(client.slot, client.id)) {
    client.put_by_other(*put);
  }
  client.look_at = client.queued();
}

bool Proxy::may_lead(View view, std::int64_t now_ns) {
  if (!shared_) return true;
  const SharedSockets::Right right = shared_->become_writer(view, now_ns);
  takes_none_ = right == SharedSockets::Right::kCannot;
  return right != SharedSockets::Right::kWaits;
}

// Another replica has taken the sockets.
void Proxy::let_go() {
  clients_.for_each([](Client& client) { client.let_go(); });
  left_.clear();
  shared_->none_left();
}

void Proxy::tend() {
  if (leading_ || !shared_) return;
  if (shared_->released()) let_go();
  std::erase_if(closed_, [this](std::uint64_t conn) {
    Client* client = clients_.find(conn);
    if (client == nullptr) return true;
    if (shared_->table().put_of(client->slot, client->id)) return false;
    forget(*client);
    return true;
  });
}

void Proxy::collect() {
  if (!shared_) return;
  if (shared_->released()) let_go();
  for (const int fd : shared_->collect()) left_.emplace_back(fd);
}

void Proxy::take_over() {
  collect();
  closed_.clear();
  counters_.last_adopted = counters_.last_reset = 0;
  std::map<SocketId, ClientSocket> found;  // the oldest first
  for (ClientSocket& socket : left_) {
    const SocketId id = socket_id(socket.fd());
    found.emplace(id, std::move(socket));
  }
  left_.clear();
  if (takes_none_) {
    for (auto& [id, socket] : found) socket.reset();
    found.clear();
  }
  const std::vector<SocketId> logged = shared_->table().logged_sockets();
  std::vector<std::uint32_t> slots;
  clients_.for_each([&](Client& client) {
    if (client.opening != Opening::kOver) return;
    ClientSocket socket;
    if (const auto its = found.find(client.id); its != found.end()) {
      socket = std::move(its->second);
      found.erase(its);
    }
    const std::uint32_t slot = client.slot;
    if (adopt(client, std::move(socket))) slots.push_back(slot);
  });
  shared_->table().keep_only(slots);
  for (auto& [id, socket] : found) {
    take_unclaimed(std::move(socket), std::binary_search(logged.begin(), logged.end(), id));
  }
  read_again_ = true;  // they have waited: what they sent meanwhile needs no event
  counters_.adopted += counters_.last_adopted;
  counters_.reset_leader += counters_.last_reset;
}

// False: it does not go on.
bool Proxy::adopt(Client& client, ClientSocket socket) {
  const Connection::Adopted how = [&] {
    const QueueChange change(*this, client);
    return client.serve(std::move(socket), batch_);
  }();
  if (how == Connection::Adopted::kServed) {
    ++counters_.last_adopted;
    client.readable = true;
    client.watch(base_, on_client, on_writable);
    client.watch_writing(client.queued() > 0);
    shared_->table().set_put(client.slot, client.put());
    return true;
  }
  if (how == Connection::Adopted::kReset) ++counters_.last_reset;
  client.slot = kNoTableSlot;
  if (client.finished()) forget(client);
  return false;
}

// An earlier leader had accepted it, and no CONNECT of it is in the log: nothing was read from it.
// Of one where something was, or that is `logged`, this replica does not know what the server has
// answered: it has recovered behind that.
void Proxy::take_unclaimed(ClientSocket socket, bool logged) {
  const std::optional<SocketState> state = socket.state(false);
  const std::uint16_t port = local_of(socket.fd()).port;
  const auto listener = std::find_if(listeners_.begin(), listeners_.end(),
                                     [port](const auto& l) { return l->host_port() == port; });
  const bool fresh =
      !logged && state && state->taken == 0 && state->put == 0 && !state->output_ended;
  if (fresh && listener != listeners_.end()) {
    ++counters_.last_adopted;
    return (*listener)->leave(std::move(socket));
  }
  // One that a leader has opened, and whose outcome is not in the log: the server knows of none,
  // and it is opened again.  The answer to our SYN counts as a byte.
  const bool attempt = state && state->taken == 0 && state->put == 1 && !state->output_ended;
  if (!attempt || listener != listeners_.end()) ++counters_.last_reset;
  socket.reset();
}

void Proxy::reset_unless_known(ConnId conn) {
  CRANE_ASSERT(leading_);
  if (clients_.find(value(conn)) != nullptr) return;
  ++counters_.last_reset;
  ++counters_.reset_leader;
  Opener lost{conn};
  batch_.add_reset(lost);
}

}  // namespace crane::proxy
