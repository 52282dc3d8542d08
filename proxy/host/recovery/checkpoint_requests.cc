// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/checkpoint_requests.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "dmt/sequence/entry.h"
#include "proxy/clients/encode.h"
#include "proxy/host/control.h"

namespace crane::node {
namespace {

// How often the leader looks for a replica that lacks what only a checkpoint has.
constexpr std::int64_t kLookNs = 50'000'000;
// A checkpoint that was asked for and did not come is asked for again after this long.
constexpr std::int64_t kAskAgainNs = 5'000'000'000;
// A replica without a server begins at one within this time, or cannot.
constexpr std::int64_t kBegunNs = 60'000'000'000;
// Of a follower's server, in time of the leader's: a checkpoint waits for it.
constexpr std::int64_t kFarBehindNs = 1'000'000'000;

replica::CheckpointSchedule::Limits limits_of(const Config& config) {
  replica::CheckpointSchedule::Limits limits;
  limits.every_ns = config.checkpoint_every_s * 1'000'000'000LL;
  limits.log_bytes = std::uint64_t{config.checkpoint_log_mb} << 20;
  if (config.replicas == 1) return limits;  // it would pause its clients for a loss to come
  if (config.checkpoint_log_mb != 0) limits.replay_ns = replica::CheckpointSchedule::kReplayNs;
  if (!config.on_disk()) limits.ring_bytes = ring_of(config);  // else the store has the rest
  return limits;
}

}  // namespace

std::uint64_t ring_of(const Config& config) {
  return config.ring_bytes != 0 ? config.ring_bytes : consensus::Options{}.ring_bytes;
}

CheckpointRequests::CheckpointRequests(const Config& config, std::string wanted_not,
                                       CheckpointRequestActions actions)
    : config_(config),
      wanted_not_(std::move(wanted_not)),
      actions_(std::move(actions)),
      schedule_(limits_of(config)) {}

bool CheckpointRequests::alone() const {
  const auto members = actions_.members();
  return std::none_of(members.begin(), members.end(), [this](const consensus::MemberStatus& m) {
    const bool other = value(m.id) != config_.replica;
    return other && m.connected && !actions_.waits_behind(m.id) &&
           m.role == consensus::MemberRole::kVoter;
  });
}

// Ascending.
std::vector<std::uint8_t> CheckpointRequests::able() const {
  std::vector<std::uint8_t> able;
  for (const consensus::MemberStatus& m : actions_.members()) {
    if (m.role != consensus::MemberRole::kVoter || value(m.id) == config_.replica) continue;
    if (m.connected && m.streaming && !actions_.waits_behind(m.id)) able.push_back(value(m.id));
  }
  if (alone()) able.push_back(config_.replica);  // ASK-1
  return able;
}

// Of those the ones that can take it at once; all, if none can.
std::vector<std::uint8_t> CheckpointRequests::soonest() const {
  std::vector<std::uint8_t> able = this->able();
  const auto late = std::stable_partition(able.begin(), able.end(), [this](std::uint8_t who) {
    return actions_.lag_ns(ReplicaId{who}) < kFarBehindNs;
  });
  if (late == able.begin()) return able;
  able.erase(late, able.end());
  return able;
}

std::string CheckpointRequests::ask(const nlohmann::json& request, bool started) {
  if (!started) return refused("not_leader", "this replica does not lead");
  if (request.value("tier", "") == "restart") return actions_.restart();
  const int named = request.value("replica", -1);
  const std::vector<std::uint8_t> able = this->able();
  if (named >= 0 && std::find(able.begin(), able.end(), named) == able.end()) {
    return refused("busy", fmt::format("replica {} is the leader, or does not follow", named));
  }
  if (able.empty()) return refused("busy", "no other replica follows");
  const std::vector<std::uint8_t> soonest = this->soonest();
  auto chosen = std::upper_bound(soonest.begin(), soonest.end(), last_asked_);  // ASK-2
  if (chosen == soonest.end()) chosen = soonest.begin();
  const auto who = named >= 0 ? static_cast<std::uint8_t>(named) : *chosen;
  const CheckpointBody body{who};
  const Result<Index> index = actions_.propose(proxy::bytes_of(body));
  if (!index.ok()) return refused("busy", index.error().message());
  last_asked_ = who;
  asked_ = index.value();
  if (seen_.now_ns != 0) schedule_.asked(seen_);
  return nlohmann::json{{"ok", true},
                        {"replica", who},
                        {"index", value(index.value())},
                        {"message", fmt::format("replica {} takes a checkpoint at entry {}", who,
                                                value(index.value()))}}
      .dump();
}

void CheckpointRequests::ask_if_wanted(bool started) {
  const bool wanted = config_.checkpoint_every_s != 0 || config_.checkpoint_log_mb != 0;
  if (!wanted || !wanted_not_.empty() || schedule_.under_way()) return;
  (void)ask(nlohmann::json::object(), started);
}

void CheckpointRequests::step(std::int64_t now_ns, std::uint64_t log_end, std::uint64_t inputs,
                              bool low, bool full) {
  seen_ = {now_ns, log_end, inputs, low, full};
  if (wanted_not_.empty() && schedule_.due(seen_)) {
    const auto answer = nlohmann::json::parse(ask(nlohmann::json::object(), true));
    if (!answer.value("ok", false)) schedule_.failed(now_ns, false);
  }
  if (now_ns < look_at_ns_) return;
  give_up_lost(now_ns);
  help_lagging(now_ns);
}

void CheckpointRequests::heard(const CheckpointNote& note, std::int64_t now_ns) {
  if (note.came == CheckpointNote::kTaken) {
    newest_ = std::max(newest_, Index{note.index});
    return schedule_.taken(note.end, now_ns);
  }
  // Of one before, which was given up late.
  if (!schedule_.under_way() || Index{note.index} < asked_) return;
  schedule_.failed(now_ns, note.came == CheckpointNote::kRefused);
}

// The replica that was to take it is gone.
void CheckpointRequests::give_up_lost(std::int64_t now_ns) {
  if (!schedule_.under_way()) return;
  const std::vector<std::uint8_t> able = this->able();
  if (std::find(able.begin(), able.end(), last_asked_) == able.end()) {
    schedule_.failed(now_ns, false);
  }
}

void CheckpointRequests::help_lagging(std::int64_t now_ns) {
  look_at_ns_ = now_ns + kLookNs;
  for (const consensus::MemberStatus& m : actions_.members()) {
    // A server in valgrind cannot begin at one.
    if (m.role == consensus::MemberRole::kAnalysis) continue;
    if (value(m.id) == config_.replica) continue;
    const bool waits = helps(m, now_ns);
    if (!m.needs_checkpoint && !waits) continue;
    const auto answer = nlohmann::json::parse(ask(nlohmann::json::object(), true));
    if (!answer.value("ok", false)) return;
    spdlog::info("replica {} {}: {}", value(m.id),
                 waits ? "waits for a checkpoint" : "lacks entries that left the log",
                 answer.value("message", ""));
    look_at_ns_ = now_ns + kAskAgainNs;
    if (waits) waited_for_ns_ = now_ns;
    return;
  }
}

// A replica without a server waits for one that is not there: or it would have begun by then.
bool CheckpointRequests::helps(const consensus::MemberStatus& member, std::int64_t now_ns) const {
  const auto behind = actions_.waits_behind(member.id);
  if (!member.connected || !behind || !wanted_not_.empty()) return false;
  if (schedule_.under_way() || schedule_.refused(now_ns)) return false;
  return newest_ <= *behind || now_ns >= waited_for_ns_ + kBegunNs;
}

void CheckpointRequests::help(ReplicaId who, Index behind, std::int64_t now_ns) {
  if (now_ns < helped_ns_ + kAskAgainNs) return;
  const auto answer = nlohmann::json::parse(ask(nlohmann::json::object(), true));
  if (!answer.value("ok", false)) return;
  helped_ns_ = now_ns;
  spdlog::info("replica {} asks for a checkpoint behind entry {}: {}", value(who), value(behind),
               answer.value("message", ""));
}

}  // namespace crane::node
