// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/group.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "dmt/base/assert.h"

namespace crane::proxy::sim {

namespace core = consensus::core;

ProcessName name_of(Process process) {
  return ProcessName{std::uint64_t{process.second} << 8 | (process.first + 1)};
}

namespace {

Process process_of(ProcessName name) {
  const auto word = static_cast<std::uint64_t>(name);
  return {static_cast<unsigned>(word & 0xff) - 1, static_cast<std::uint32_t>(word >> 8)};
}

}  // namespace

// --- processes -----------------------------------------------------------------------------------

bool Group::SimProcesses::may_write(ProcessName name) {
  if (group_.mutant_ == Mutant::kWriteEarly) return false;
  const Process process = process_of(name);
  return group_.cluster_.runs(process.first) &&
         group_.cluster_.process(process.first) == process.second;
}

bool Group::SimProcesses::is_stopped(ProcessName name) {
  return group_.cluster_.is_stopped(process_of(name).first);
}

void Group::SimProcesses::end(ProcessName name, std::int64_t) {
  const Process process = process_of(name);
  consensus::sim::Cluster& cluster = group_.cluster_;
  cluster.trace_line("replica %u, the writer, is killed", process.first);
  group_.count(Count::kEnded);
  cluster.world().after(group_.random().between(10'000, 2'000'000), [&cluster, process] {
    if (cluster.process(process.first) != process.second) return;
    cluster.end_process(process.first, cluster.world().random.between(1'000'000, 60'000'000));
  });
}

// --- the world -----------------------------------------------------------------------------------

Group::Group(consensus::sim::Cluster& cluster, Mutant mutant)
    : cluster_(cluster),
      mutant_(mutant),
      table_fd_(::memfd_create("connections", MFD_CLOEXEC)),
      table_path_("/proc/self/fd/" + std::to_string(table_fd_)),
      kernel_(hooks(), mutant),
      reference_(0) {
  CRANE_ASSERT(table_fd_ >= 0);
  consensus::sim::Random& r = random();
  options_.send_buffer = r.between(512, 6000);
  options_.receive_window = r.between(600, 4000);
  options_.first_window = r.between(200, 600);
  reference_ = EchoServer(options_.send_buffer);
  stops_per_mille_ = r.chance(600) ? r.between(1, 12) : 0;
  const std::uint64_t clients = r.between(2, 8);
  for (std::uint64_t i = 0; i < clients; ++i) {
    clients_.emplace_back(static_cast<unsigned>(i + 1), r);
  }
  for (unsigned id = 0; id < cluster.replicas(); ++id) {
    nodes_.push_back(std::make_unique<Node>(*this, id));
  }
}

Group::~Group() {
  nodes_.clear();
  ::close(table_fd_);
}

Kernel::Hooks Group::hooks() {
  return {[this] {
            for (const auto& node : nodes_) node->look();
          },
          [this](Process by, const SimSocket& socket) { used(by, socket); },
          [this](Process by) { return stops(by); },
          [this](Process by, const SimSocket& socket) { was_reset(by, socket); }};
}

void Group::begin() {
  for (unsigned i = 0; i < clients_.size(); ++i) {
    cluster_.world().at(clients_[i].begins_ns(), [this, i] { step_client(i); });
  }
}

// The group must serve once more: a client connects after the last fault.
void Group::faults_end() {
  const auto last = static_cast<unsigned>(clients_.size());
  clients_.emplace_back(last + 1, random());
  cluster_.world().after(random().below(100'000'000), [this, last] { step_client(last); });
}

void Group::step_client(unsigned number) {
  SimClient& client = clients_[number];
  const std::uint64_t received = client.received();
  cluster_.violate(client.step(kernel_, random()));
  cluster_.note(client.received(), number);
  count(Count::kBytes, client.received() - received);
  if (client.done()) {
    cluster_.trace_line("%s is done", client.text().c_str());
    count(Count::kClients);
    return;
  }
  // Fast enough for all to reach their end after the last fault.
  const std::uint64_t most = cluster_.faults_over() ? 1'000'000 : client.pace_ns();
  const std::uint64_t pace = std::min(client.pace_ns(), most);
  cluster_.world().after(random().about(pace), [this, number] { step_client(number); });
}

// --- events of the log ---------------------------------------------------------------------------

void Group::delivered(unsigned id, const core::Entry& entry) {
  const std::uint64_t index = value(entry.at.index);
  if (index == log_.size() + 1) {
    Logged logged;
    logged.of_core = entry.type >= core::kOwnTypesMin;
    if (!logged.of_core) {
      logged.type = static_cast<EntryType>(entry.type);
      logged.body.assign(entry.payload.begin(), entry.payload.end());
    }
    log_.push_back(logged);
    if (!logged.of_core) record(index, logged);
  }
  if (index <= log_.size()) nodes_[id]->delivered(entry);
}

void Group::record(std::uint64_t index, const Logged& entry) {
  cluster_.violate(ledger_.add(index, entry.type, entry.body));
  reference_.admit(entry.type, Index{index}, entry.body,
                   [&](const OutputHeader& header, std::span<const std::byte>) {
                     if (header.type == OutputType::kClose) ledger_.closed(header.conn, index);
                   });
}

// --- the kernel's state ------------------------------------------------------------------------

void Group::used(Process by, const SimSocket& socket) {
  if (by != writer_) {
    cluster_.violate("WRITER: replica " + std::to_string(by.first) + " uses the socket of client " +
                     std::to_string(socket.client) + ", and replica " +
                     std::to_string(writer_.first) + " is the writer");
  }
  const Ledger::Line* line = ledger_.of(socket.id);
  if (socket.taken > (line == nullptr ? 0 : line->committed)) {
    cluster_.violate("TAKEN: replica " + std::to_string(by.first) + " has taken " +
                     std::to_string(socket.taken) + " bytes of client " +
                     std::to_string(socket.client) + ", more than the log has");
  }
}

bool Group::stops(Process by) {
  if (cluster_.faults_over() || !random().chance(stops_per_mille_)) return false;
  cluster_.trace_line("replica %u is in the middle of a call", by.first);
  count(Count::kInside);
  cluster_.stop_process(by.first, random().between(1'000'000, 80'000'000));
  return true;
}

void Group::was_reset(Process by, const SimSocket& socket) {
  SimClient& client = clients_[socket.client - 1];
  if (client.done()) return;
  const Ledger::Line* line = ledger_.of(socket.id);
  if (!nodes_[by.first]->lacks(socket, line == nullptr ? 0 : line->closed_at)) {
    return cluster_.violate("RESET: replica " + std::to_string(by.first) + " resets " +
                            client.text());
  }
  count(Count::kLost);
  client.lose();
}

// --- the end -------------------------------------------------------------------------------------

std::string Group::at_end() { return ledger_.at_end(); }

consensus::sim::ApplicationCounts Group::counts() const { return counts_; }

// --- worlds --------------------------------------------------------------------------------------

namespace {

// It is one host: only processes are lost, and the time of stopped ones.
consensus::sim::Faults draw(std::uint64_t seed) {
  consensus::sim::Faults f = consensus::sim::Faults::draw(seed);
  consensus::sim::Random r(seed ^ 0xc0aa'ec71'0000'0007U);
  f.scene = consensus::sim::Scene::kStorm;
  f.replicas = f.members = r.chance(300) ? 5 : 3;
  f.ring_bytes = 1U << 18;
  f.payload_max = 4200;
  f.duration_ns = r.between(300'000'000, 600'000'000);
  f.death_is_seen = f.dead_memory_reachable = true;
  f.delay_max_ns = r.between(20'000, 300'000);
  f.notice_max_ns = r.between(20'000, 500'000);
  f.incident_every_ns = r.between(8'000'000, 60'000'000);
  f.incident_max_ns = r.between(5'000'000, 80'000'000);
  f.crash_weight = r.between(1, 5);
  f.pause_weight = r.between(1, 5);
  f.abdicate_weight = r.between(1, 4);
  f.aim_at_leader_per_mille = r.between(500, 950);
  f.checkpoint_every_ns = r.chance(500) ? r.between(3'000'000, 60'000'000) : 0;
  f.lost_max = f.change_every_ns = 0;
  f.disk = f.forge = false;
  f.power_weight = f.blackout_weight = f.rot_per_mille = f.bad_disk_weight = 0;
  f.views_min = 3;
  return f;
}

std::unique_ptr<consensus::sim::Application> make(consensus::sim::Cluster& cluster, int mutant) {
  return std::make_unique<Group>(cluster, static_cast<Mutant>(mutant));
}

}  // namespace

const char* name(Mutant mutant) {
  static constexpr const char* kNames[] = {
      "none",           "consume-early",  "write-early",  "any-view",     "drop-output",
      "taken-one-more", "taken-one-less", "put-one-more", "put-one-less", "reset-is-fin",
      "tell-early",     "lose-unclaimed", "not-logged",   "no-keeper",    "serve-deposed",
      "forget-end",     "release-early",  "mark-once"};
  static_assert(std::size(kNames) == kMutants);
  return kNames[static_cast<std::size_t>(mutant)];
}

const consensus::sim::ApplicationKind kConnectionWorlds{
    "--connections", draw, make, [](int mutant) { return name(static_cast<Mutant>(mutant)); },
    kMutants};

}  // namespace crane::proxy::sim
