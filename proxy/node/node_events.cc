// SPDX-License-Identifier: Apache-2.0
// Events of the parts: entries of the log, output of the server, its start and its end.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>

#include <algorithm>

#include "dmt/base/clock.h"
#include "dmt/scheduler.h"
#include "dmt/sequence/hash_entry.h"
#include "dmt/slices.h"
#include "dmt/stall.h"
#include "proxy/clients/encode.h"
#include "proxy/host/out_of_band.h"
#include "proxy/host/recovery/early_points.h"
#include "proxy/host/soft_barriers.h"
#include "proxy/node/node.h"

namespace crane::node {
namespace {

// How long to stay after the server's end, so that followers learn what was committed.
constexpr std::int64_t kLingerNs = 3'000'000'000;

}  // namespace

// --- other replicas -----------------------------------------------------------------------------

void Node::on_message(ReplicaId from, std::span<const std::byte> bytes) {
  const auto message = replica::read_message(bytes);
  if (!message) {  // its wire version differs
    return spdlog::warn("replica {} sent {} bytes that are not a message", value(from),
                        bytes.size());
  }
  struct MessageReceiver {
    Node& node;
    ReplicaId from;
    void operator()(const replica::ProgressMessage& m) {
      node.proposals_->on_report(from, m, node.now_ns_);
    }
    void operator()(const replica::CommittedMessage& m) { node.recovery_->on_report(from, m); }
    void operator()(const replica::ServerPlaceMessage& m) { node.receive(from, m); }
    void operator()(const replica::CheckpointNote& m) { node.recovery_->on_report(m); }
    void operator()(const replica::RefusalMessage& m) { node.recovery_->on_report(m); }
    void operator()(const replica::CheckpointWish& m) { node.recovery_->on_report(from, m); }
    void operator()(const replica::WishRefusal& m) { node.recovery_->on_report(from, m); }
    void operator()(const replica::PeerNote& m) {
      if (node.status_ != nullptr) node.status_->on_report(from, m, node.now_ns_);
    }
    void operator()(const replica::HostNote& m) {
      if (node.status_ != nullptr) node.status_->on_report(from, m);
    }
    void operator()(const replica::DrainedNote& m) {
      if (node.status_ != nullptr) node.status_->on_report(from, m);
    }
    void operator()(const proxy::Digest& m) { node.live_check_->on_report(from, m); }
  };
  std::visit(MessageReceiver{*this, from}, *message);
}

// A link to the fabric's port for another purpose than the log.
void Node::on_visitor(ReplicaId from, std::unique_ptr<consensus::SecureLink> link) {
  if (from == consensus::kOperator) {
    operator_links_->take(std::move(link));
  } else {
    recovery_->visited(from, std::move(link));
  }
}

// A leader's question, or a follower's answer.
void Node::receive(ReplicaId from, const replica::ServerPlaceMessage& message) {
  if (message.answers != 0) return lead_watch_.on_report(from, message, now_ns_);
  replica::ServerPlaceMessage answer;
  answer.answers = 1;
  if (!recovery_->acceptor_only()) {
    dmt::Layout& layout = server_->layout();
    answer.applied = value(server_->applied());
    answer.clock = dmt::clock_now(layout);
    answer.waits = dmt::is_at_leader_clock_limit(layout) && dmt::glimpse(layout).in_operation;
  }
  (void)send(*consensus_, from, answer);
}

// --- proposals ----------------------------------------------------------------------------------

Result<Index> Node::append(const replica::Leadership::Proposal& proposal, GrantTurns grant,
                           std::span<const std::byte> body) {
  if (server_->segment().short_of_memory()) {
    return Error{Code::kBusy, 0, "no room in shared memory for the server"};
  }
  return consensus_->propose(static_cast<std::uint8_t>(proposal.type),
                             static_cast<std::uint64_t>(proposal.stamp_ns), grant, body);
}

// --- the log ------------------------------------------------------------------------------------

void Node::on_committed(const consensus::EntryView& entry) {
  if (end_.done()) return;
  if (recovery_->acceptor_only()) {
    intake_->pass_over(entry);
    return recovery_->after_server(entry);
  }
  if (!intake_->is_next(entry.at.index)) {  // LOG-K1: the server would lack entries
    return fail(ExitStatus::kMissedEntries,
                fmt::format("this replica's log begins at entry {}, but entry {} is needed: the "
                            "entries that it missed while it was away are gone",
                            value(entry.at.index), value(intake_->last()) + 1));
  }
  // Also while the log is held: otherwise the event that releases the log might never come.
  const bool early = static_cast<EntryType>(entry.type) == EntryType::kEarlyPoint;
  if (early && !has_early_point(entry)) return;
  server_->outputs().committed(entry);
  if (!LogIntake::is_of_consensus(entry)) {
    leadership_.committed(entry.at, static_cast<std::int64_t>(entry.stamp_ns), monotonic_ns());
    if (mode_.member()) {
      proxy_->committed(static_cast<EntryType>(entry.type), entry.at.index, entry.payload);
    }
  }
  intake_->committed(entry);
}

void Node::entry_held(const consensus::EntryView& entry) {
  stalls_->committed(static_cast<EntryType>(entry.type), entry.payload);
}

// The entry goes to the server.
void Node::deliver(const consensus::EntryView& entry, bool was_held) {
  const auto type = static_cast<EntryType>(entry.type);
  if (const char* what = recovery_->difference(entry)) {
    const unsigned leader = value(view_owner(entry.at.view));
    return fail(ExitStatus::kDisagrees, disagreement(config_, what, leader));
  }
  ConnectBody body;
  if (type == EntryType::kConnect && proxy::read_body(entry.payload, body)) {
    server_->outputs().connected(ConnId{value(entry.at.index)}, body);
    mode_.connected(ConnId{value(entry.at.index)}, body);
  }
  if (!was_held) stalls_->committed(type, entry.payload);
  consensus::EntryView delivered = entry;
  if (type == EntryType::kHash) {
    live_check_->committed(entry);
    // The server does not use the rest.
    delivered.payload = entry.payload.first(std::min(entry.payload.size(), sizeof(HashEntryHead)));
  }
  if (type == EntryType::kRestart) {
    delivered.payload = entry.payload.first(std::min(entry.payload.size(), sizeof(RestartBody)));
  }
  recovery_->before_server(entry);
  server_->scheduler_link().committed(delivered);
  recovery_->after_server(entry);
}

// False: the server began the computation without the point, so the replica begins again (SLICE-4).
// Clients have not seen the output since then: a leader's is held (SliceWatch).
bool Node::has_early_point(const consensus::EntryView& entry) {
  EarlyPoint early;
  if (!proxy::read_body(entry.payload, early)) return true;  // admission ignores it, too
  if (dmt::has_early_point(server_->layout(), early)) return true;
  server_->scheduler_link().hold(true);
  if (const Outcome noted = note_early_point(config_, early); !noted.ok()) {
    fail(ExitStatus::kNoRoom, "cannot store a tick point: " + noted.error().message());
    return false;
  }
  fail(ExitStatus::kBeginsAgain,
       fmt::format("the computation that began at clock {} does not end soon: it begins again, "
                   "in time slices",
                   early.clock));
  return false;
}

std::optional<control::Readiness> Node::readiness_of(ReplicaId peer) const {
  if (status_ == nullptr) return std::nullopt;
  return status_->reported(peer);
}

// --- the server ---------------------------------------------------------------------------------

void Node::server_started(pid_t pid) {
  spdlog::info("server started, {}",
               pid > 0 ? fmt::format("pid {}", pid) : "and has already ended");
  server_->started();
  std::string why;
  const Result<bool> revived = recovery_->server_started(why);
  if (!revived.ok()) server_failed(ExitStatus::kServerNotStarted, why);
  if (revived.ok() && revived.value()) {  // its threads sleep until the next entry
    listeners_->open_all(true);
    listeners_->recover();
    dmt::release_turn(server_->layout());
  }
  if (!mode_.server_started(pid, why).ok()) fail(ExitStatus::kBadConfiguration, why);
  supervisor_.server(pid);
  supervisor_.ready();
}

void Node::server_failed(ExitStatus status, const std::string& why) {
  if (!recovery_->server_failed(why)) fail(status, why + recovery_->oom_kills().text());
}

void Node::process_killed(std::uint32_t process, std::uint32_t pid) {
  recovery_->server_died();
  fail(ExitStatus::kServerDied,
       fmt::format("process {} (pid {} of the server) was killed on this replica only{}", process,
                   pid, recovery_->oom_kills().text()));
}

void Node::server_ended(int status) {
  if (recovery_->ended()) return;
  ServerExit& exit = server_->exit();
  if (!exit.exited()) {
    recovery_->server_died();
    return fail(ExitStatus::kServerDied,
                WIFSIGNALED(status)
                    ? fmt::format("the server was killed by signal {} on this replica only{}",
                                  WTERMSIG(status), recovery_->oom_kills().text())
                    : fmt::format("the server ended with status {} outside the schedule",
                                  WEXITSTATUS(status)));
  }
  exit.report(exit.failed() ? server_->monitor().last_refusal() : "");
  if (exit.in_background()) {
    spdlog::error("the server went to the background: run it in the foreground");
  } else {
    spdlog::info("the server ended with status {}", exit.code());
  }
  warn_of_missing_soft_barriers(config_, server_->layout());
  server_->monitor().stop();
  supervisor_.exit(exit);
  end_.linger_until(monotonic_ns() + kLingerNs);
}

}  // namespace crane::node
