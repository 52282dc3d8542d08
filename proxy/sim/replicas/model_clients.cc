// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/replicas/model_clients.h"

#include <algorithm>

#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {
namespace {

constexpr std::uint64_t kBytesMost = 6'000;  // the most that one client sends

// A socket ends with its process if no other process has it.
proxy::sim::Mutant kernel_of(const Settings& settings) {
  return settings.hosts ? proxy::sim::Mutant::kNoKeeper : proxy::sim::Mutant::kNone;
}

}  // namespace

ModelClients::ModelClients(ReplicaWorld& world, unsigned count, std::uint64_t seed)
    : world_(world),
      random_(seed),
      kernel_({[] {}, [](auto...) {}, [](auto) { return false; },
               [this](proxy::sim::Process by, const proxy::sim::SimSocket& socket) {
                 was_reset(by, socket);
               }},
              kernel_of(world.settings())) {
  options_.send_buffer = random_.between(512, 6000);
  options_.receive_window = random_.between(600, 4000);
  options_.first_window = random_.between(200, 600);
  const auto busy_ns = static_cast<std::uint64_t>(world.settings().busy_ns);
  for (unsigned i = 0; i < count; ++i) {
    clients_.emplace_back(i + 1, random_, kBytesMost);
    begins_ns_.push_back(static_cast<std::int64_t>(random_.between(busy_ns / 30, busy_ns)));
  }
}

proxy::ConnectionSlots* ModelClients::slots() {
  return world_.settings().hosts ? nullptr : &slots_;
}

void ModelClients::step() {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    proxy::sim::SimClient& client = clients_[i];
    if (world_.now_ns() < begins_ns_[i] || client.done()) continue;
    const std::uint64_t received = client.received();
    check_step(client.step(kernel_, random_), client);
    received_ += client.received() - received;
    if (client.done()) world_.trace_line("%s is done", client.text().c_str());
  }
  compare();
}

void ModelClients::compare() {
  for (const ModelLog& log = world_.log(); compared_ < log.committed();) {
    const LogEntry& e = log.entry(++compared_);
    if (e.kind == LogEntry::Kind::kClient) world_.complain(ledger_.add(compared_, e.type, *e.body));
  }
}

// If each replica has its own host, a client receives the end or a reset with its leader (DESIGN
// C8), and no wrong byte.
void ModelClients::check_step(const std::string& complaint, proxy::sim::SimClient& client) {
  const bool ends = complaint.starts_with("FIN") || complaint.starts_with("RESET");
  if (ends && world_.settings().hosts) return client.lose();
  world_.complain(complaint);
}

void ModelClients::was_reset(proxy::sim::Process by, const proxy::sim::SimSocket& socket) {
  proxy::sim::SimClient& client = clients_[socket.client - 1];
  const proxy::sim::Ledger::Line* line = ledger_.of(socket.id);
  const std::uint64_t closed_at = line == nullptr ? 0 : line->closed_at;
  const bool may = world_.settings().hosts || world_.replica(by.first).lacks(socket, closed_at);
  if (may) return client.lose();  // its last bytes are lost too, if it has received the end
  if (client.done()) return;
  world_.complain("RESET: replica " + std::to_string(by.first) + " resets " + client.text());
}

std::uint64_t ModelClients::lost() const {
  const auto lost = [](const auto& c) { return c.lost(); };
  return static_cast<std::uint64_t>(std::count_if(clients_.begin(), clients_.end(), lost));
}

void ModelClients::ended(std::uint64_t conn) {
  compare();
  const proxy::sim::Ledger::Line* line = ledger_.of_connection(conn);
  if (line == nullptr) return;
  proxy::sim::SimClient& client = clients_[line->client - 1];
  if (!client.lost()) world_.trace_line("%s loses its server", client.text().c_str());
  client.lose();
}

}  // namespace crane::replica::sim
