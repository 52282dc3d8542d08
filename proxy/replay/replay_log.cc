// SPDX-License-Identifier: Apache-2.0
#include "proxy/replay/replay_log.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "dmt/base/assert.h"

namespace crane::node {
namespace {

// Entries delivered before the node handles the server's output.
constexpr int kEntriesAtOnce = 1024;
constexpr std::uint64_t kLookAgainNs = 1'000'000;
// How often a growing history is checked for entries: while it grows, and when it has stopped
// growing for kBusyNs.
constexpr std::uint64_t kFollowNs = 20'000'000, kIdleNs = 300'000'000, kBusyNs = 3'000'000'000;

const Error kFollows{Code::kNotLeader, 0, "a replay follows its recording"};

}  // namespace

ReplayLog::ReplayLog(Options options)
    : options_(std::move(options)),
      next_(options_.history == nullptr
                ? 1
                : std::max(value(options_.behind) + 1, options_.history->first())),
      event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  CRANE_ASSERT(event_ >= 0);
  CRANE_ASSERT((options_.history == nullptr) != (options_.follower == nullptr));
  if (options_.history != nullptr) {
    CRANE_ASSERT(value(options_.to) <= options_.history->last());  // REPLAY-1
  }
}

ReplayLog::~ReplayLog() { ::close(event_); }

std::uint64_t ReplayLog::poll(std::uint64_t now_ns) {
  for (int i = 0; i < kEntriesAtOnce; ++i) {
    if (at_end() || !options_.gate->opens()) return now_ns + kLookAgainNs;
    const auto next = next_entry();
    if (!next) return now_ns + (now_ns - last_entry_ns_ < kBusyNs ? kFollowNs : kIdleNs);
    const consensus::EntryView& entry = *next;
    last_entry_ns_ = now_ns;
    if (entry.at.view != view_) {
      view_ = entry.at.view;
      options_.callbacks.on_role(consensus::Role::kFollower, view_, view_owner(view_));
    }
    next_ = value(entry.at.index) + 1;  // REPLAY-1: the node detects gaps
    if (entry.type < proxy::kConsensusTypes) last_for_server_ = entry.at.index;
    options_.callbacks.on_committed(entry);
  }
  return now_ns;
}

std::optional<consensus::EntryView> ReplayLog::next_entry() {
  if (options_.follower == nullptr) return options_.history->entry(next_);
  auto entry = options_.follower->next();
  const std::string& damage = options_.follower->damage();
  if (!entry && !damage.empty()) options_.callbacks.on_fatal(damage.c_str());
  return entry;
}

Result<Index> ReplayLog::propose(std::uint8_t, std::uint64_t, std::uint32_t,
                                 std::span<const std::byte>) {
  return kFollows;
}

Result<Index> ReplayLog::change_members(const consensus::MemberChange&) { return kFollows; }

Outcome ReplayLog::transfer(ReplicaId) { return kFollows; }

std::vector<consensus::MemberStatus> ReplayLog::members() const {
  std::vector<consensus::MemberStatus> all(options_.replicas);
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    all[i].id = ReplicaId{i};
    all[i].role = consensus::MemberRole::kVoter;
  }
  return all;
}

consensus::GroupStatus ReplayLog::status() const {
  consensus::GroupStatus s;
  s.view = view_;
  s.leader = view_owner(view_);
  s.last = options_.follower != nullptr ? handed_out() : options_.to;
  s.committed = s.applied = handed_out();
  return s;
}

}  // namespace crane::node
