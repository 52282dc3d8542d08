// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/node.h"

#include <algorithm>
#include <utility>

#include "dmt/base/assert.h"
#include "proxy/clients/encode.h"
#include "proxy/sim/group.h"

namespace crane::proxy::sim {

namespace core = consensus::core;

namespace {

constexpr std::uint16_t kPort = 80;
constexpr std::size_t kTailLook = 64;  // as in tuning.h, for small worlds
constexpr unsigned kSkipped = 300;     // of a thousand things to do, left for the next turn

}  // namespace

Node::Node(Group& group, unsigned id)
    : group_(group),
      id_(id),
      batch_([this](EntryType type, GrantTurns grant,
                    std::span<const std::byte> body) { return propose_entry(type, grant, body); },
             [](Opener&) {}),
      server_(group.options().send_buffer) {}

bool Node::inside() const { return group_.kernel().is_inside(process_); }

// --- the process ---------------------------------------------------------------------------------

void Node::started() {
  process_ = {id_, group_.cluster().process(id_)};
  runs_ = true;
  auto table = ConnectionTable::open(group_.table_path());
  CRANE_ASSERT(table.ok());
  table_ = std::move(table).value();
  right_.emplace(table_->memory(), name_of(process_), group_.processes());
  group_.kernel().started(process_);
}

// Nothing is closed: the keeper has the same descriptors.
void Node::ended() {
  if (!runs_) return;
  runs_ = leads_ = serving_ = turn_planned_ = server_planned_ = false;
  batch_.clear();
  for (const auto& client : clients_) (void)client->surrender().release();
  for (ClientSocket& socket : left_) (void)socket.release();
  for (ClientSocket& socket : unclaimed_) (void)socket.release();
  clients_.clear();
  left_.clear();
  unclaimed_.clear();
  inputs_.clear();
  restored_at_.reset();
  restored_written_.clear();
  start_ = admitted_ = 0;
  right_.reset();
  table_.reset();
  group_.kernel().died(process_);
}

void Node::resumed() {
  group_.kernel().resumed(process_);
  wake(0);
}

bool Node::lacks(const SimSocket& socket, std::uint64_t closed_at) const {
  if (closed_at != 0 && restored_at_ && closed_at <= *restored_at_) return true;
  const auto written = restored_written_.find(socket.id);
  return written != restored_written_.end() && written->second > socket.put.size();
}

// --- the log and the server ----------------------------------------------------------------------

void Node::delivered(const core::Entry& entry) {
  const std::uint64_t index = value(entry.at.index);
  if (!restored_at_) restore_at(index - 1);
  inputs_.push_back(index);
  plan_server();
  if (entry.type < core::kOwnTypesMin) {
    hear(static_cast<EntryType>(entry.type), entry.at.index, entry.payload);
  }
  if (serving_ || leads_) wake(group_.random().between(2'000, 60'000));
}

// The server is brought back to where it stood behind that entry, as from a checkpoint.
void Node::restore_at(std::uint64_t index) {
  restored_at_ = admitted_ = index;
  server_ = EchoServer(group_.options().send_buffer);
  for (std::uint64_t i = 1; i <= index; ++i) {
    const Group::Logged& entry = group_.log()[i - 1];
    if (!entry.of_core) server_.admit(entry.type, Index{i}, entry.body, [](auto&&...) {});
  }
  for (const auto& [conn, open] : server_.connections()) {
    Client& client = add(std::make_unique<Client>(kPort, group_.options()));
    client.conn = ConnId{conn};
    client.id = open.opened.socket;
    client.slot = open.opened.slot;
    client.committed = true;
    client.restore(open.progress);
    restored_written_[client.id] = open.progress.written;
  }
}

// As Proxy::committed().
void Node::hear(EntryType type, Index index, std::span<const std::byte> body) {
  ConnectBody connect;
  if (type == EntryType::kConnect && read_body(body, connect)) return connected(index, connect);
  ConnBody about;
  if (type == EntryType::kStart || !read_body(body, about)) return;
  Client* client = find(value(about.conn));
  if (client == nullptr) return;
  WindowBody window;
  if (type == EntryType::kData) {
    client->committed_data(body.size() - sizeof(DataBody));
    client->settles = client->serves();
  } else if (type == EntryType::kShutdown) {
    client->committed_shutdown();
  } else if (type == EntryType::kReset) {
    client->committed_reset();
  } else if (type == EntryType::kWindow && read_body(body, window)) {
    client->committed_window(window.total);
  }
}

void Node::connected(Index index, const ConnectBody& body) {
  if (group_.mutant() != Mutant::kNotLogged) table_->set_logged(body.slot, body.socket);
  if (Client* own = find(value(index))) {
    own->committed = true;
    return;
  }
  if (!table_->put_of(body.slot, body.socket)) return;
  Client& client = add(std::make_unique<Client>(kPort, group_.options()));
  client.conn = ConnId{value(index)};
  client.id = body.socket;
  client.slot = body.slot;
  client.committed = true;
}

void Node::plan_server() {
  if (server_planned_ || inputs_.empty()) return;
  server_planned_ = true;
  auto& random = group_.random();
  const bool late = !group_.cluster().faults_over() && random.chance(15);
  const std::uint64_t delay =
      late ? random.between(2'000'000, 40'000'000) : random.between(2'000, 150'000);
  group_.cluster().world().after(delay, [this, process = process_] {
    group_.cluster().for_process(id_, process.second, [this] {
      server_planned_ = false;
      run_server();
    });
  });
}

void Node::run_server() {
  for (std::uint64_t n = group_.random().between(1, 6); n > 0 && !inputs_.empty(); --n) {
    admitted_ = inputs_.front();
    inputs_.pop_front();
    const Group::Logged& entry = group_.log()[admitted_ - 1];
    if (entry.of_core) continue;
    server_.admit(entry.type, Index{admitted_}, entry.body,
                  [this](const OutputHeader& header, std::span<const std::byte> bytes) {
                    output(header, bytes);
                  });
    if (inside()) break;
  }
  plan_server();
  if (leads_ || serving_) return wake(group_.random().between(2'000, 60'000));
  tend();
}

// As Proxy::output().
void Node::output(const OutputHeader& header, std::span<const std::byte> bytes) {
  Client* client = find(header.conn);
  if (client == nullptr) return;
  if (header.type == OutputType::kBytes) {
    (void)client->write(header.argument, bytes, batch_);
  } else if (header.type == OutputType::kShutdown) {
    (void)client->shut_down(batch_);
  } else if (header.type == OutputType::kClose) {
    (void)client->close(header.argument != 0, batch_);
  } else if (header.type == OutputType::kConsumed) {
    return client->consumed(header.argument);
  }
  if (client->queued() > group_.options().send_buffer) {
    group_.cluster().violate("TAIL: replica " + std::to_string(id_) + " keeps " +
                             std::to_string(client->queued()) + " bytes of one connection");
  }
  write_done(*client);
}

void Node::write_done(Client& client) {
  if (!serving_) {
    if (group_.mutant() == Mutant::kDropOutput) {
      client.put_by_other(client.put() + client.queued());
    }
    return trim(client);
  }
  if (inside()) return;
  if (client.fd() >= 0) return tell_put(client);
  if (client.finished()) forget(client);
}

void Node::tell_put(Client& client) {
  const bool early = group_.mutant() == Mutant::kTellEarly;
  table_->set_put(client.slot, client.put() + (early ? client.queued() : 0));
}

void Node::trim(Client& client) {
  if (client.queued() < client.look_at + kTailLook) return;
  if (const auto put = table_->put_of(client.slot, client.id)) client.put_by_other(*put);
  client.look_at = client.queued();
}

// --- turns of the leader -------------------------------------------------------------------------

void Node::look() {
  if (leads_ || serving_ || (runs_ && group_.kernel().released(process_))) {
    wake(group_.random().between(2'000, 200'000));
  }
}

void Node::wake(std::uint64_t delay_ns) {
  if (turn_planned_ || !runs_) return;
  turn_planned_ = true;
  group_.cluster().world().after(delay_ns, [this, process = process_] {
    group_.cluster().for_process(id_, process.second, [this] {
      turn_planned_ = false;
      turn();
    });
  });
}

void Node::turn() {
  if (!leads_ && !serving_) return tend();
  if (!serving_) return try_to_lead();
  sweep();
  bool again = accept_one();
  again = serve_clients() || again;
  if (!inside()) again = propose() || again;
  if (serving_ && !inside()) settle();
  if (again || inside()) wake(group_.random().between(2'000, 100'000));
}

bool Node::serve_clients() {
  bool again = false;
  for (std::size_t i = clients_.size(); i-- > 0 && !inside();) {
    Client& client = *clients_[i];
    if (group_.random().chance(kSkipped)) {
      again = true;
      continue;
    }
    again = client.read(batch_) == Connection::Read::kSome || again;
    const std::size_t queued = client.queued();
    if (queued > 0 && !inside()) (void)client.flush(batch_);
    again = again || client.queued() != queued;
    write_done(client);
  }
  return again;
}

bool Node::accept_one() {
  const bool waits = !unclaimed_.empty() || group_.kernel().waits_for_accept();
  if (!waits || group_.random().chance(kSkipped)) return waits;
  if (!unclaimed_.empty()) {
    ClientSocket socket = std::move(unclaimed_.front());
    unclaimed_.pop_front();
    take_client(std::move(socket));
    return true;
  }
  const int fd = group_.kernel().accept(process_);
  if (fd >= 0) take_client(ClientSocket(fd, group_.kernel()));
  return fd >= 0;
}

void Node::take_client(ClientSocket socket) {
  const int fd = socket.fd();
  ConnectBody body{};
  body.port = kPort;
  body.peer.port = static_cast<std::uint16_t>(group_.kernel().socket_of(fd).client);
  body.socket = group_.kernel().id_of(fd);
  Client& client = add(std::make_unique<Client>(std::move(socket), kPort, group_.options()));
  client.id = body.socket;
  client.slot = body.slot = table_->claim(client.id);
  batch_.add_connect(client, body);
}

bool Node::propose() {
  if (batch_.empty()) return false;
  if (group_.random().chance(kSkipped)) return true;
  (void)batch_.propose_all(1);
  group_.cluster().carry_on(id_);
  return true;
}

Result<Index> Node::propose_entry(EntryType type, GrantTurns grant,
                                  std::span<const std::byte> body) {
  core::Proposal proposal;
  proposal.type = static_cast<std::uint8_t>(type);
  proposal.grant = grant;
  proposal.stamp_ns = group_.cluster().world().now_ns();
  proposal.payload = body;
  return group_.cluster().propose(id_, proposal);
}

void Node::settle() {
  for (std::size_t i = clients_.size(); i-- > 0 && !inside();) {
    if (std::exchange(clients_[i]->settles, false)) clients_[i]->drop_committed();
  }
}

// What a call has left undone in which this process was stopped.
void Node::sweep() {
  for (std::size_t i = clients_.size(); i-- > 0;) write_done(*clients_[i]);
}

// --- changes of the leader -----------------------------------------------------------------------

void Node::leads(View view, bool on) {
  view_ = view;
  leads_ = on;
  start_ = 0;
  if (on) return wake(group_.random().between(2'000, 50'000));
  step_down();
}

bool Node::propose_start() {
  StartBody body{};
  body.leader = id_;
  const Result<Index> index = propose_entry(EntryType::kStart, 1, bytes_of(body));
  if (index.ok()) start_ = value(index.value());
  group_.cluster().carry_on(id_);
  return index.ok();
}

// As Service::follow_role(): an earlier writer ends while START is agreed on.
void Node::try_to_lead() {
  const auto now = static_cast<std::int64_t>(group_.cluster().world().now_ns());
  const View view = group_.mutant() == Mutant::kAnyView ? View{0} : view_;
  const bool may_lead = right_->become_writer(view, now) == WriterRight::Right::kOurs;
  if (may_lead) group_.became_writer(process_);
  if (start_ == 0 && !propose_start()) return wake(500'000);
  if (!may_lead) {
    return wake(static_cast<std::uint64_t>(std::max<std::int64_t>(right_->due_ns() - now, 1'000)));
  }
  if (!leads_ || admitted_ < start_) return;
  group_.kernel().interruptible(false);
  take_over();
  group_.kernel().interruptible(true);
  wake(0);
}

// As Proxy::take_over().
void Node::take_over() {
  Kernel& kernel = group_.kernel();
  if (kernel.released(process_)) let_go();
  serving_ = true;
  std::map<SocketId, ClientSocket> found;
  for (const int fd : kernel.collect(process_)) {
    found.emplace(kernel.id_of(fd), ClientSocket(fd, kernel));
  }
  for (ClientSocket& socket : left_) {
    const SocketId id = kernel.id_of(socket.fd());
    found.emplace(id, std::move(socket));
  }
  left_.clear();
  const std::vector<SocketId> logged = table_->logged_sockets();
  std::vector<std::uint32_t> slots;
  std::uint64_t adopted = 0;
  for (std::size_t i = clients_.size(); i-- > 0;) {
    Client& client = *clients_[i];
    ClientSocket socket;
    if (const auto its = found.find(client.id); its != found.end()) {
      socket = std::move(its->second);
      found.erase(its);
    }
    const std::uint32_t slot = client.slot;
    if (!adopt(client, std::move(socket))) continue;
    slots.push_back(slot);
    ++adopted;
  }
  table_->keep_only(slots);
  for (auto& [id, socket] : found) {
    take_unclaimed(std::move(socket), std::binary_search(logged.begin(), logged.end(), id));
  }
  for (const auto& [conn, open] : server_.connections()) {
    if (find(conn) != nullptr) continue;
    Opener lost{ConnId{conn}};
    batch_.add_reset(lost);
  }
  group_.count(Count::kTakeOvers, adopted > 0 ? 1 : 0);
  group_.count(Count::kAdopted, adopted);
  group_.cluster().tell("replica %u takes %llu clients over", id_,
                        static_cast<unsigned long long>(adopted));
}

bool Node::adopt(Client& client, ClientSocket socket) {
  const Connection::Adopted how = client.serve(std::move(socket), batch_);
  if (how == Connection::Adopted::kServed) {
    tell_put(client);
    return true;
  }
  client.slot = kNoTableSlot;
  if (client.finished()) forget(client);
  return false;
}

void Node::take_unclaimed(ClientSocket socket, bool logged) {
  if (group_.mutant() == Mutant::kLoseUnclaimed) return;
  const std::optional<SocketState> state = socket.state(false);
  if (!logged && state && state->taken == 0 && state->put == 0 && !state->output_ended) {
    group_.count(Count::kUnclaimed);
    unclaimed_.push_back(std::move(socket));
    return;
  }
  socket.reset();
}

// As Proxy::step_down().
void Node::step_down() {
  right_->stop_writing();
  if (!serving_ || group_.mutant() == Mutant::kServeDeposed) return;
  serving_ = false;
  batch_.clear();
  for (ClientSocket& socket : unclaimed_) left_.push_back(std::move(socket));
  unclaimed_.clear();
  for (std::size_t i = clients_.size(); i-- > 0;) {
    Client& client = *clients_[i];
    client.settles = false;
    client.look_at = 0;
    if (client.committed) {
      client.follow();
      continue;
    }
    left_.push_back(client.surrender());
    forget(client);
  }
}

void Node::tend() {
  if (group_.kernel().released(process_)) let_go();
  for (std::size_t i = clients_.size(); i-- > 0;) {
    Client& client = *clients_[i];
    if (client.server_closed() && !table_->put_of(client.slot, client.id)) forget(client);
  }
}

void Node::let_go() {
  for (const auto& client : clients_) client->let_go();
  left_.clear();
  group_.kernel().none_left(process_);
}

// --- the list ------------------------------------------------------------------------------------

Node::Client* Node::find(std::uint64_t conn) {
  for (const auto& client : clients_) {
    if (value(client->conn) == conn) return client.get();
  }
  return nullptr;
}

Node::Client& Node::add(std::unique_ptr<Client> client) {
  return *clients_.emplace_back(std::move(client));
}

void Node::forget(Client& client) {
  if (serving_) table_->release(client.slot);  // TABLE-1
  std::erase_if(clients_, [&client](const auto& c) { return c.get() == &client; });
}

}  // namespace crane::proxy::sim
