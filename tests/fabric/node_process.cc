// SPDX-License-Identifier: Apache-2.0
#include "tests/fabric/node_process.h"
#include "dmt/base/clock.h"

#include <fmt/format.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <map>

namespace crane::test {
namespace {

using consensus::Consensus;
using consensus::EntryView;
using consensus::MemberRole;
using consensus::Role;

constexpr std::uint8_t kInput = 1;
constexpr std::uint64_t kInputsPerMs = 5;
constexpr std::uint64_t kMs = 1'000'000;
constexpr int kAskAgainMs = 100;
constexpr int kSoonMs = 30'000;  // generous: the machine may be busy

std::uint8_t role_in(const consensus::GroupStatus& status, std::uint8_t id) {
  const auto found = std::find_if(status.members.begin(), status.members.end(),
                                  [id](const auto& m) { return value(m.id) == id; });
  return static_cast<std::uint8_t>(found == status.members.end() ? MemberRole::kNone : found->role);
}

void record(NodeReport& r, const EntryView& e) {
  const std::uint64_t index = value(e.at.index);
  std::uint64_t id = e.type;
  if (e.type == kInput) {
    if (e.payload.size() < sizeof id) ++r.broken;
    std::memcpy(&id, e.payload.data(), std::min(sizeof id, e.payload.size()));
  }
  if (index >= kHistoryMax) return;
  const std::uint64_t before = r.history[index].exchange(id);
  if (before != 0 && before != id) ++r.broken;
  if (index > 1 && r.history[index - 1] == 0) ++r.broken;
  r.committed = std::max(r.committed.load(), index);
}

// Proposes the due inputs of a steady trickle, of 8 to 1000 bytes.
void trickle(Consensus& c, NodeReport& r, std::uint64_t now, std::uint64_t& next_ns,
             std::uint64_t& n) {
  static std::byte payload[1000];
  next_ns = std::max(next_ns, now - std::min(now, 5 * kMs));
  for (; next_ns <= now; next_ns += kMs / kInputsPerMs) {
    const std::uint64_t id = (static_cast<std::uint64_t>(::getpid()) << 32) | ++n;
    std::memcpy(payload, &id, sizeof id);
    const auto index = c.propose(kInput, now, 7, {payload, 8 + n * 37 % 993});
    if (!index.ok() && index.error().code == Code::kBusy) ++r.busy;
  }
}

}  // namespace

std::uint64_t monotonic_ns() noexcept { return static_cast<std::uint64_t>(crane::monotonic_ns()); }

NodeGroup::NodeGroup(std::uint8_t replicas, consensus::FabricKind fabric,
                     const std::string& store_directory, std::uint8_t members,
                     std::uint64_t ring_bytes)
    : replicas_(replicas),
      members_(members == 0 ? replicas : members),
      ring_bytes_(ring_bytes),
      fabric_(fabric),
      ports_(fabric == consensus::FabricKind::kTcp
                 ? replicas + static_cast<std::size_t>(replicas * (replicas - 1) / 2)
                 : 0),
      store_directory_(store_directory),
      children_(replicas) {
  if (fabric == consensus::FabricKind::kTcp) start_relays();
  for (std::uint8_t i = 0; i < members_; ++i) start(i);
}

consensus::FabricKind& NodeGroup::usual_fabric() noexcept {
  static consensus::FabricKind kind = consensus::FabricKind::kShm;
  return kind;
}

void NodeGroup::start(std::uint8_t id) {
  children_[id].reset();
  children_[id] = std::make_unique<Child>([this, id] { run(id); });
}

void NodeGroup::lose_memory(std::uint8_t id) {
  std::filesystem::remove_all(directory_.path() + "/r" + std::to_string(id));
}

void NodeGroup::start_relays() {
  std::size_t port = replicas_;
  for (std::uint8_t from = 0; from < replicas_; ++from) {
    for (auto to = static_cast<std::uint8_t>(from + 1); to < replicas_; ++to, ++port) {
      relays_.push_back({from, to, port, nullptr});
      const auto listen = ports_.endpoints()[port];
      const auto forward = ports_.endpoints()[to];
      relays_.back().process = std::make_unique<Child>(
          [this, listen, forward] { run_relay(listen, forward, weather()); });
    }
  }
}

std::vector<consensus::Endpoint> NodeGroup::endpoints_of(std::uint8_t id) const {
  if (fabric_ == consensus::FabricKind::kVerbs) return verbs_endpoints(replicas_, verbs_port_);
  if (fabric_ != consensus::FabricKind::kTcp) return {};
  std::vector<consensus::Endpoint> out(ports_.endpoints().begin(),
                                       ports_.endpoints().begin() + replicas_);
  for (const Relay& r : relays_) {
    if (r.from == id) out[r.to] = ports_.endpoints()[r.port];
  }
  return out;
}

void NodeGroup::cut(std::uint8_t id) {
  for (const Relay& r : relays_) {
    if (r.from == id || r.to == id) r.process->stop();
  }
}

void NodeGroup::heal(std::uint8_t id) {
  for (const Relay& r : relays_) {
    if (r.from == id || r.to == id) r.process->resume();
  }
}

void NodeGroup::run(std::uint8_t id) {
  NodeReport& r = report(id);
  consensus::Options o;
  o.directory = directory_.path();
  o.self = ReplicaId{id};
  o.replicas = replicas_;
  o.members = members_;
  o.ring_bytes = ring_bytes_;
  o.log_id = 4711;
  o.fabric = fabric_;
  o.endpoints = endpoints_of(id);
  o.secret = test_secret();
  if (!store_directory_.empty()) o.durability = consensus::Durability::kDisk;
  o.store_directory = store_directory_;
  o.callbacks.on_committed = [&](const EntryView& e) { record(r, e); };
  o.callbacks.on_role = [&](Role role, View view, ReplicaId) {
    r.view = value(view);
    if (role == Role::kLeader) r.leader_since_ns = monotonic_ns();
    if (role == Role::kLearner) ++r.learned;
    r.role = static_cast<std::uint32_t>(role);
  };
  o.callbacks.on_fatal = [&](const char* why) {
    ++r.fatal;
    ::dprintf(2, "replica %d: fatal: %s\n", id, why);
  };
  auto opened = Consensus::open(std::move(o));
  if (!opened) ::_exit(3);
  Consensus& c = *opened.value();
  std::uint64_t next_ns = 0;
  std::uint64_t n = 0;
  for (;;) {
    std::uint64_t now = monotonic_ns();
    std::uint64_t wake = c.poll(now);
    if (report_->traffic && c.status().role == Role::kLeader) {
      trickle(c, r, now, next_ns, n);
      now = monotonic_ns();
      wake = std::min(c.poll(now), now + kMs);
    }
    if (report_->command.asked != report_->command.done) obey(c);
    const consensus::GroupStatus status = c.status();
    r.removed = status.removed ? 1 : 0;
    r.last = value(status.last);
    r.own_view = value(status.view);
    r.connected = status.connected;
    r.needs_checkpoint = status.needs_checkpoint ? 1 : 0;
    r.changing = status.changing ? 1 : 0;  // before the roles: the test reads those first
    for (std::uint8_t i = 0; i < replicas_; ++i) r.members[i] = role_in(status, i);
    r.voters = static_cast<std::uint64_t>(
        std::count_if(status.members.begin(), status.members.end(),
                      [](const auto& m) { return m.role == consensus::MemberRole::kVoter; }));
    r.links_lost = status.fabric.links_lost;
    r.no_room = status.no_room.empty() ? 0 : 1;
    r.probes = status.fabric.probes;
    ++r.rounds;
    c.flush_doorbells();
    r.durable = value(c.status().durable);
    const std::uint64_t wait = wake > now ? wake - now : 0;
    const timespec t{static_cast<time_t>(wait / 1'000'000'000),
                     static_cast<long>(wait % 1'000'000'000)};
    pollfd fd{c.event_fd(), POLLIN, 0};
    if (wait > 0) ::ppoll(&fd, 1, &t, nullptr);
  }
}

void NodeGroup::obey(Consensus& c) {
  Command& command = report_->command;
  if (c.status().role != Role::kLeader) return;
  const std::uint64_t number = command.asked;
  const auto id = ReplicaId{static_cast<std::uint8_t>(command.id)};
  Code code = Code::kOk;
  if (command.kind == Command::kTransfer) {
    const Outcome done = c.transfer(id);
    if (!done) code = done.error().code;
  } else {
    const auto kind = static_cast<consensus::MemberChange::Kind>(command.kind.load());
    const auto done = c.change_members({kind, id});
    if (!done) code = done.error().code;
  }
  command.code = static_cast<int>(code);
  command.done = number;
}

bool NodeGroup::change_committed(Command::Kind kind, std::uint8_t id) {
  const auto is = [id](const NodeReport& r, MemberRole role) {
    return r.members[id] == static_cast<std::uint8_t>(role) && r.changing == 0 &&
           r.role == static_cast<std::uint32_t>(Role::kLeader);
  };
  if (kind == Command::kRemove && report(id).removed == 1) return true;
  for (std::uint8_t i = 0; i < replicas_; ++i) {
    const NodeReport& r = report(i);
    if (kind == Command::kRemove ? is(r, MemberRole::kNone) : is(r, MemberRole::kVoter))
      return true;
    if (kind == Command::kAdd && is(r, MemberRole::kLearner)) return true;
  }
  return false;
}

bool NodeGroup::command(Command::Kind kind, std::uint8_t id, int timeout_ms) {
  Command& c = report_->command;
  const std::uint64_t deadline = monotonic_ns() + static_cast<std::uint64_t>(timeout_ms) * kMs;
  while (monotonic_ns() < deadline) {
    c.kind = kind;
    c.id = id;
    const std::uint64_t number = ++c.asked;
    if (!until([&] { return let_pass_us(200), c.done == number; }, timeout_ms)) return false;
    if (kind == Command::kTransfer) {
      if (c.code == static_cast<int>(Code::kOk)) return true;
      if (c.code != static_cast<int>(Code::kBadArgument)) continue;
      // It leads already, after another election.
      return report(id).role == static_cast<std::uint32_t>(Role::kLeader);
    }
    // The change is in force where it was appended.  Repeat the command in case that leader was
    // deposed.
    if (until([&] { return let_pass_us(200), change_committed(kind, id); }, kAskAgainMs))
      return true;
  }
  UNSCOPED_INFO("change " << static_cast<int>(kind) << " of r" << int{id} << "\n" << describe());
  return false;
}

int NodeGroup::wait_for_leader(int not_this, int timeout_ms) {
  int found = -1;
  until(
      [&] {
        std::uint64_t view = 0;
        found = -1;
        for (std::uint8_t i = 0; i < replicas_; ++i) {
          const NodeReport& r = report(i);
          if (i == not_this || r.role != static_cast<std::uint32_t>(Role::kLeader)) continue;
          if (r.view >= view) {
            view = r.view;
            found = i;
          }
        }
        if (found < 0) let_pass_us(200);  // do not starve the nodes
        return found >= 0;
      },
      timeout_ms);
  if (found < 0) UNSCOPED_INFO(describe());
  return found;
}

std::uint8_t NodeGroup::leader(int not_this) {
  const int found = wait_for_leader(not_this, kSoonMs);
  REQUIRE(found >= 0);
  return static_cast<std::uint8_t>(found);
}

std::uint8_t NodeGroup::settled_leader() {
  const std::uint8_t leads = leader();
  const std::uint64_t index = report(leads).committed;
  for (std::uint8_t i = 0; i < replicas_; ++i) REQUIRE(wait_committed(i, index, kSoonMs));
  return leads;
}

void NodeGroup::stop_traffic() {
  set_traffic(false);
  const int leader = wait_for_leader(-1, kAskAgainMs * 100);
  REQUIRE(leader >= 0);
  const NodeReport& r = report(static_cast<std::uint8_t>(leader));
  // Wait for the round that may have begun already, and for one more.
  const std::uint64_t then = r.rounds + 2;
  REQUIRE(until([&] { return let_pass_us(200), r.rounds >= then; }, kAskAgainMs * 100));
}

std::string NodeGroup::describe() const {
  std::string text;
  for (std::uint8_t i = 0; i < replicas_; ++i) {
    const NodeReport& r = report_->nodes[i];
    text += fmt::format("r{}: role {}, view {}, last {}, committed {}, connected {}, voters {}{}\n",
                        i, r.role.load(), r.own_view.load(), r.last.load(), r.committed.load(),
                        r.connected.load(), r.voters.load(),
                        r.needs_checkpoint != 0 ? ", needs a checkpoint" : "");
  }
  return text;
}

bool NodeGroup::wait_committed(std::uint8_t id, std::uint64_t index, int timeout_ms) {
  return until([&] { return let_pass_us(200), report(id).committed >= index; }, timeout_ms);
}

void NodeGroup::check_histories() {
  std::uint64_t longest = 0;
  for (std::uint8_t i = 0; i < replicas_; ++i) {
    CHECK(report(i).broken == 0);
    longest = std::max<std::uint64_t>(longest, report(i).committed);
  }
  std::map<std::uint64_t, std::uint64_t> seen;
  std::uint64_t disagreements = 0;
  std::uint64_t twice = 0;
  for (std::uint64_t index = 1; index <= std::min(longest, kHistoryMax - 1); ++index) {
    std::uint64_t id = 0;
    for (std::uint8_t i = 0; i < replicas_; ++i) {
      const std::uint64_t mine = report(i).history[index];
      if (mine == 0) continue;
      if (id != 0 && mine != id) ++disagreements;
      id = mine;
    }
    if (id > 0xff && !seen.emplace(id, index).second) ++twice;
  }
  CHECK(disagreements == 0);
  CHECK(twice == 0);
}

}  // namespace crane::test
