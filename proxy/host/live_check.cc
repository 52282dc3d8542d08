// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/live_check.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <ctime>
#include <utility>

#include "proxy/host/mode.h"
#include "proxy/host/out_of_band.h"
#include "proxy/host/proposals.h"
#include "proxy/host/replica_server.h"
#include "proxy/host/server_maps.h"
#include "proxy/host/turns.h"
#include "proxy/record/first_turn.h"
#include "proxy/record/schedule_record.h"
#include "proxy/record/turn_names.h"

namespace crane::node {

namespace cuts = replica::cuts;

namespace {

std::string wall_clock_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

LiveCheck::LiveCheck(const Config& config, ReplicaServer& server,
                     const replica::Leadership& leadership, Proposals& proposals, NodeMode& mode)
    : config_(config),
      server_(server),
      leadership_(leadership),
      proposals_(proposals),
      mode_(mode),
      machine_({ReplicaId{config.replica}, config.replicas, mode.member()}) {}

// --- events -------------------------------------------------------------------------------------

void LiveCheck::step(const cuts::Event& event, std::int64_t now_ns) {
  now_ns_ = now_ns;
  machine_.step(event, now_ns);
  loop_.run(machine_, [this](auto& action) { carry_out(action); });
}

void LiveCheck::restore(Index at, std::uint64_t verified, std::uint64_t restarted_from) {
  step(cuts::Restored{at, verified, restarted_from}, now_ns_);
}

void LiveCheck::committed(const consensus::EntryView& entry) {
  cuts::Committed hash{entry.at, {}};
  if (proxy::decode(entry.payload, hash.body)) step(std::move(hash), now_ns_);
}

LiveCheck::Diverged LiveCheck::admitted_hash(const OutputHeader& header, bool accepts_digests,
                                             std::int64_t now_ns) {
  const proxy::SchedulePoint here{header.conn, header.clock, header.argument};
  step(cuts::Admitted{here, accepts_digests, replica::voters_of(group_->members())}, now_ns);
  return std::exchange(diverged_, std::nullopt);
}

cuts::Reign LiveCheck::reign() const { return {leadership_.leads(), leadership_.view()}; }

void LiveCheck::on_report(ReplicaId from, const proxy::Digest& digest) {
  step(cuts::PeerDigest{from, digest, reign()}, now_ns_);
}

std::int64_t LiveCheck::step(bool serves, const EntryCounts& entries, std::int64_t now_ns) {
  step(cuts::Tick{serves, leadership_.busy(), entries, server_.outputs().bytes()}, now_ns);
  return machine_.deadline_ns();
}

// --- actions ------------------------------------------------------------------------------------

void LiveCheck::carry_out(cuts::LookAtMembers&) { step(cuts::Members{group_->members()}, now_ns_); }

void LiveCheck::carry_out(cuts::Propose& proposal) {
  if (proposal.with_evidence) proposal.body.evidence = evidence_;
  const Result<Index> index = proposals_.propose(EntryType::kHash, proposals_.input_grant(),
                                                 proxy::encode(proposal.body), now_ns_);
  step(cuts::Proposed{index.ok(), proposal.body.cut, index.ok() ? index.value() : Index{}},
       now_ns_);
}

void LiveCheck::carry_out(cuts::TakeDigest& take) {
  const Outputs& outputs = server_.outputs();
  evidence_ = outputs.evidence(take.here);
  RecentTurns recent = recent_turns(server_.layout(), take.here.clock);
  evidence_.first_turn = recent.first;
  evidence_.turns = std::move(recent.turns);
  step(cuts::Taken{{value(take.view), take.here, outputs.digest()}, reign()}, now_ns_);
}

void LiveCheck::carry_out(cuts::SendDigest& digest) {
  (void)send(*group_, digest.to, digest.digest);
}

void LiveCheck::carry_out(cuts::Compared& compared) {
  mode_.digest(ReplicaId{config_.replica}, compared.own, compared.logged);
}

void LiveCheck::carry_out(cuts::Verified&) { server_.outputs().verified(evidence_); }

void LiveCheck::carry_out(cuts::StartAgain& begin) { server_.outputs().restart_from(begin.here); }

void LiveCheck::carry_out(cuts::Raise& alarm) {
  std::string text = std::move(alarm.what);
  if (alarm.theirs) text += differences(*alarm.theirs, alarm.leader);
  if (alarm.must_log) spdlog::error("{}", text);
  const std::string dir = alarm.keeps_evidence ? keep_evidence(alarm.at) : "";
  if (!dir.empty()) {
    spdlog::info(
        "the last turns are in {}: crane-diff --schedule compares them with those of others", dir);
  }
  step(cuts::Raised{std::move(text), alarm.at, alarm.accused, wall_clock_text()}, now_ns_);
}

void LiveCheck::carry_out(cuts::Diverged& diverged) { diverged_ = std::move(diverged); }

// --- the difference
// -------------------------------------------------------------------------------

// The first differences from the output and turns of replica `other`, the leader; empty if there is
// nothing to report.
std::string LiveCheck::differences(const proxy::Evidence& theirs, ReplicaId other) const {
  const std::string where = proxy::difference(evidence_, theirs);
  const std::string start = where.empty() ? "" : "; different: " + where;
  const proxy::FirstTurn turn = proxy::first_turn(evidence_, theirs);
  switch (turn.answer) {
    case proxy::FirstTurn::Answer::kNone:
      return start + "; no turn is different";
    case proxy::FirstTurn::Answer::kUnknown:
      return start + "; first different turn: unknown, " + turn.why;
    case proxy::FirstTurn::Answer::kFound:
      break;
  }
  proxy::TurnNames names;
  names.set_operations(operation_names());
  names.set_maps(maps());
  const auto text = [&](const std::optional<TurnRecord>& t) {
    return t ? names.text(*t) : std::string("none, the entry was admitted earlier");
  };
  return start + fmt::format("; first different turn: {}, {} on this replica, {} on replica {}",
                             turn.number, text(turn.own), text(turn.theirs), value(other));
}

// Stores what is still known beside the log: crane-diff --schedule compares the replicas' files.
std::string LiveCheck::keep_evidence(Index at) const {
  const std::string dir = fmt::format("{}/diverged-{}", config_.replica_dir(), value(at));
  auto file = proxy::ScheduleRecorder::open(dir, config_.replica);
  if (!file.ok()) return "";
  proxy::ScheduleRecorder& kept = *file.value();
  if (evidence_.base.index != 0) kept.admitted(evidence_.base);
  for (const proxy::SchedulePoint& p : evidence_.points) kept.admitted(p);
  kept.turns(evidence_.first_turn, std::as_bytes(std::span(evidence_.turns)));
  kept.names(operation_names());
  kept.maps(maps());
  kept.finish();
  return kept.recording() ? dir : "";
}

std::string_view LiveCheck::operation_names() const noexcept {
  const dmt::Layout& layout = server_.layout();
  return {layout.operation_names, sizeof layout.operation_names};
}

std::string LiveCheck::maps() const { return maps_of(server_.pid()); }

}  // namespace crane::node
