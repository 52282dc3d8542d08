// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/recovery/checkpoint_requests.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "dmt/sequence/entry.h"
#include "proxy/clients/encode.h"
#include "proxy/node/control.h"

namespace crane::node {
namespace {

// How often the leader looks for a replica that lacks what only a checkpoint has.
constexpr std::int64_t kLookNs = 50'000'000;
// A checkpoint that was asked for and did not come is asked for again after this long.
constexpr std::int64_t kAskAgainNs = 5'000'000'000;

}  // namespace

CheckpointRequests::CheckpointRequests(const Config& config, std::string wanted_not,
                                       CheckpointRequestActions actions)
    : config_(config),
      wanted_not_(std::move(wanted_not)),
      actions_(std::move(actions)),
      schedule_(config.checkpoint_every_s * 1'000'000'000LL,
                std::uint64_t{config.checkpoint_log_mb} << 20) {}

bool CheckpointRequests::alone() const {
  const auto members = actions_.members();
  return std::none_of(members.begin(), members.end(), [this](const consensus::MemberStatus& m) {
    return m.role == consensus::MemberRole::kVoter && value(m.id) != config_.replica;
  });
}

// Ascending.
std::vector<std::uint8_t> CheckpointRequests::able() const {
  std::vector<std::uint8_t> able;
  for (const consensus::MemberStatus& m : actions_.members()) {
    if (m.role != consensus::MemberRole::kVoter || value(m.id) == config_.replica) continue;
    if (m.connected && m.streaming) able.push_back(value(m.id));
  }
  if (alone()) able.push_back(config_.replica);  // ASK-1
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
  auto chosen = std::upper_bound(able.begin(), able.end(), last_asked_);  // ASK-2
  if (chosen == able.end()) chosen = able.begin();
  const auto who = named >= 0 ? static_cast<std::uint8_t>(named) : *chosen;
  const CheckpointBody body{who};
  const Result<Index> index = actions_.propose(proxy::bytes_of(body));
  if (!index.ok()) return refused("busy", index.error().message());
  last_asked_ = who;
  return nlohmann::json{{"ok", true},
                        {"replica", who},
                        {"index", value(index.value())},
                        {"message", fmt::format("replica {} takes a checkpoint at entry {}", who,
                                                value(index.value()))}}
      .dump();
}

void CheckpointRequests::ask_if_wanted(bool started) {
  const bool wanted = config_.checkpoint_every_s != 0 || config_.checkpoint_log_mb != 0;
  if (wanted && wanted_not_.empty()) (void)ask(nlohmann::json::object(), started);
}

void CheckpointRequests::step(std::int64_t now_ns, std::uint64_t log_end, std::uint64_t inputs,
                              bool low) {
  if (wanted_not_.empty() && schedule_.due(now_ns, log_end, inputs, low)) {
    (void)ask(nlohmann::json::object(), true);
  }
  if (now_ns >= look_at_ns_) help_lagging(now_ns);
}

void CheckpointRequests::help_lagging(std::int64_t now_ns) {
  look_at_ns_ = now_ns + kLookNs;
  for (const consensus::MemberStatus& m : actions_.members()) {
    // A server in valgrind cannot begin at one.
    if (m.role == consensus::MemberRole::kAnalysis) continue;
    if (!m.needs_checkpoint || value(m.id) == config_.replica) continue;
    const auto answer = nlohmann::json::parse(ask(nlohmann::json::object(), true));
    if (!answer.value("ok", false)) return;
    spdlog::info("replica {} lacks entries that left the log: {}", value(m.id),
                 answer.value("message", ""));
    look_at_ns_ = now_ns + kAskAgainNs;
    return;
  }
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
