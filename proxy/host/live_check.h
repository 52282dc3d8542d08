// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica's part in live checking (proxy/record/verification.h): its digest at each cut, the
// judgement that all replicas make alike, and what it keeps and says when it differs.
//
//   leader: step() proposes HASH --committed--> --admitted--> digest --note--> leader: heard()
//
// Threads: the node's one thread.
// INVARIANT CHECK-1  A digest is taken at the admission of its cut, the same moment of the schedule
//                    on every replica; entries that the server has not admitted yet wait.
// INVARIANT CHECK-2  The leader counts only digests of its own view and of the last cut that it
//                    proposed.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "dmt/layout.h"
#include "dmt/sequence/output.h"
#include "proxy/host/config.h"
#include "proxy/host/entry_counts.h"
#include "proxy/host/leadership.h"
#include "proxy/host/outputs.h"
#include "proxy/record/alarms.h"
#include "proxy/record/verification.h"

namespace crane::node {

struct LiveCheckActions {
  // A HASH entry with this payload.
  std::function<Result<Index>(std::span<const std::byte> payload)> propose;
  // Out of band: it may be lost.
  std::function<void(ReplicaId to, const proxy::Digest& digest)> send;
  std::function<std::vector<consensus::MemberStatus>()> members;
  // /proc/PID/maps of the server's main process.
  std::function<std::string()> maps;
  // The own digest at a cut, and what the log tells of all replicas' there.
  std::function<void(const proxy::Digest& own, const proxy::Digests& logged)> compared;
  // This replica is in the minority at the cut of log index `at`: it must not go on.
  std::function<void(const std::string& alarm, Index at)> diverged;
};

class LiveCheck {
 public:
  // `judges`: as a member of the group; a replay only compares.  All references outlive it.
  LiveCheck(const Config& config, const dmt::Layout& layout, Outputs& outputs,
            const Leadership& leadership, bool judges, LiveCheckActions actions);

  // The replica begins at a checkpoint, at `at`, of this state of the alarms.
  void restore(Index at, std::uint64_t verified, std::uint64_t restarted_from) noexcept;

  // A HASH entry of the log, in its order.
  void committed(const consensus::EntryView& entry);
  // The own server admitted an entry; what it put out before was handed to Outputs.
  // `takes_digests`: the replica has not come to its end.
  void admitted(const OutputHeader& header, bool takes_digests, std::int64_t now_ns);

  // --- the leader's
  void lead();
  void heard(ReplicaId from, const proxy::Digest& digest);
  struct Seen {
    bool serves = false;  // it leads, takes clients, and goes on
    EntryCounts entries{};
  };
  // When to look again at the latest.
  std::int64_t step(const Seen& seen, std::int64_t now_ns);

  const proxy::Alarms& alarms() const noexcept { return alarms_; }
  proxy::Verdict verdict() const noexcept { return verdict_; }
  // CLOCK_MONOTONIC at the last cut at which this replica and a majority were equal; 0: never.
  std::int64_t verified_ns() const noexcept { return verified_ns_; }

 private:
  struct CommittedHash {
    Viewstamp at;
    proxy::HashBody body;
  };
  bool checks(const Seen& seen) const noexcept { return seen.serves && config_.replicas > 1; }
  proxy::VerifyPolicy::Work work_done(const EntryCounts& entries) const noexcept;
  void propose(const proxy::VerifyPolicy::Work& done, std::int64_t now_ns);
  bool all_digests_there() const;
  std::size_t voters() const;  // at least 1
  proxy::HashBody next_hash(const proxy::VerifyPolicy::Work& done);
  void take_digest(View view, const proxy::SchedulePoint& point);
  void judge(proxy::HashBody body, ReplicaId proposer, std::int64_t now_ns);
  void raise(const proxy::Judgement& judgement, const proxy::HashBody& body, ReplicaId proposer,
             std::uint64_t from, bool again);
  void replace_own_digest(proxy::Digests& digests) const;
  std::string differences(const proxy::HashBody& body, ReplicaId other, std::uint64_t index) const;
  std::string keep_evidence() const;
  std::string_view operation_names() const noexcept;

  const Config& config_;
  const dmt::Layout& layout_;
  Outputs& outputs_;
  const Leadership& leadership_;
  const bool judges_;
  const LiveCheckActions actions_;
  Index began_at_{};                  // the checkpoint's entry; 0: none
  std::deque<CommittedHash> hashes_;  // not yet admitted by the own server
  proxy::VerifyPolicy policy_;
  std::uint64_t cut_ = 0;                    // the last one proposed here
  proxy::Digests digests_;                   // leader: of that cut
  std::optional<proxy::Digest> own_digest_;  // at the last cut
  std::uint64_t evidence_cut_ = 0;           // where the evidence ends
  proxy::Evidence evidence_;
  std::int64_t verified_ns_ = 0;
  proxy::Verdict verdict_ = proxy::Verdict::kUnknown;
  proxy::Alarms alarms_;
};

}  // namespace crane::node
