// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's requests for checkpoints: of an operator, by the schedule, and for replicas that
// lack entries which have left the log.
//
// Threads: the node's one thread.
// INVARIANT ASK-1  The leader's own server is paused for a checkpoint only when no other replica
//                  that votes is there and has a server.
// INVARIANT ASK-2  Replicas take turns, so that a majority has a checkpoint that its log can be cut
//                  below; but not one whose server is far behind, which would take it only when
//                  it has caught up, while another's is not.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "proxy/host/config.h"
#include "proxy/replica/messages.h"
#include "proxy/replica/recovery/checkpoint_schedule.h"

namespace crane::node {

using replica::CheckpointNote;

// What the log in memory holds, bytes.
std::uint64_t ring_of(const Config& config);

struct CheckpointRequestActions {
  std::function<std::vector<consensus::MemberStatus>()> members;
  // How far the follower's server is behind, ns.
  std::function<std::int64_t(ReplicaId who)> lag_ns;
  // It has no server, and waits for a checkpoint behind that entry.
  std::function<std::optional<Index>(ReplicaId who)> waits_behind;
  // A CHECKPOINT entry.
  std::function<Result<Index>(std::span<const std::byte> body)> propose;
  // The server is ended, and a new one started on its files; the answer.
  std::function<std::string()> restart;
};

class CheckpointRequests {
 public:
  // `wanted_not`: why no checkpoints are taken on this machine; empty: they are.
  CheckpointRequests(const Config& config, std::string wanted_not,
                     CheckpointRequestActions actions);

  // An operator asks; {"replica": N}, {"tier": "restart"}.  The answer (control).
  // `started`: this replica leads, and has proposed START.
  std::string ask(const nlohmann::json& request, bool started);
  // crane-run asks, on behalf of a replica that waits for one: unless its operator wants none.
  void ask_if_wanted(bool started);
  // While it serves.  `log_end`: of the committed log, bytes; `inputs`: of clients, so far.
  // `low`: the store's disk has little room; `full`: inputs wait for a checkpoint.
  void step(std::int64_t now_ns, std::uint64_t log_end, std::uint64_t inputs, bool low = false,
            bool full = false);
  // On every replica, as any of them may lead next: what became of a checkpoint.
  void heard(const CheckpointNote& note, std::int64_t now_ns);
  // .. and how long the own server has run in all when the log ended there.
  void ran(std::uint64_t log_end, std::int64_t run_ns) noexcept { schedule_.ran(log_end, run_ns); }
  // Half of the ring is used behind the newest checkpoint.
  bool is_urgent(std::uint64_t log_end) const noexcept { return schedule_.is_urgent(log_end); }
  // A replica on another host that cannot begin without one came for it.
  void help(ReplicaId who, Index behind, std::int64_t now_ns);

  // No other replica that votes is there and has a server.
  bool alone() const;
  const std::string& wanted_not() const noexcept { return wanted_not_; }

 private:
  std::vector<std::uint8_t> able() const;
  std::vector<std::uint8_t> soonest() const;
  void help_lagging(std::int64_t now_ns);
  bool helps(const consensus::MemberStatus& member, std::int64_t now_ns) const;
  void give_up_lost(std::int64_t now_ns);

  const Config& config_;
  const std::string wanted_not_;
  const CheckpointRequestActions actions_;
  replica::CheckpointSchedule schedule_;
  replica::CheckpointSchedule::Seen seen_;  // by the last step()
  std::uint8_t last_asked_ = 0;             // who took the last one,
  Index asked_{};                           // at that entry
  std::int64_t look_at_ns_ = 0;             // when to look again for a replica that lacks entries
  std::int64_t helped_ns_ = 0;      // when one was last asked for, for a replica that came for it
  Index newest_{};                  // that was heard of
  std::int64_t waited_for_ns_ = 0;  // when one was last asked for, for a replica without a server
};

}  // namespace crane::node
