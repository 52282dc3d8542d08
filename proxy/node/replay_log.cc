// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/replay_log.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "dmt/base/assert.h"

namespace crane::node {
namespace {

// Between two looks at what the server put out.
constexpr int kEntriesAtOnce = 1024;
constexpr std::uint64_t kLookAgainNs = 1'000'000;

const Error kFollows{Code::kNotLeader, 0, "a replay follows what was recorded"};

}  // namespace

ReplayLog::ReplayLog(Options options)
    : options_(std::move(options)),
      next_(std::max(value(options_.behind) + 1, options_.history->first())),
      event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  CRANE_ASSERT(event_ >= 0);
  CRANE_ASSERT(value(options_.to) <= options_.history->last());  // Y1
}

ReplayLog::~ReplayLog() { ::close(event_); }

std::uint64_t ReplayLog::poll(std::uint64_t now_ns) {
  for (int i = 0; i < kEntriesAtOnce; ++i) {
    if (at_end() || !options_.room()) return now_ns + kLookAgainNs;
    const consensus::EntryView entry = options_.history->entry(next_);
    if (entry.at.view != view_) {
      view_ = entry.at.view;
      options_.callbacks.on_role(consensus::Role::kFollower, view_, view_owner(view_));
    }
    ++next_;
    options_.callbacks.on_committed(entry);
  }
  return now_ns;
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
  s.last = options_.to;
  s.committed = s.applied = handed_out();
  return s;
}

}  // namespace crane::node
