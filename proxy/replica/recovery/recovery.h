// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that lets a replica recover, as one machine: the checkpoints that it takes, requests
// and restarts at, from which place on the log stays whole, and what the replica missed.
//
// proxy/replica/replica.h lists the invariants of each state of a replica.
//
// step() runs its parts in this order.  The checkpoint that holds the log is first, because
// everything else waits for it.  Then come notes and requests, then what this replica lacks.  The
// last one decides from where on the log is kept, which follows from all of these.
//
// Threads: the node's one thread.
// INVARIANT RECOVERY-1  At most one of a dump and a restart holds the log; each waits until the
//                       other's checkpoint is packed.

#include <cstdint>
#include <utility>

#include "proxy/replica/mutant.h"
#include "proxy/replica/recovery/catch_up.h"
#include "proxy/replica/recovery/checkpoint_requests.h"
#include "proxy/replica/recovery/checkpointer.h"
#include "proxy/replica/recovery/log_keeper.h"
#include "proxy/replica/recovery/missing_entries.h"
#include "proxy/replica/recovery/passed_on_wish.h"
#include "proxy/replica/recovery/recovery_tier.h"
#include "proxy/replica/recovery/run_meter.h"
#include "proxy/replica/step.h"

namespace crane::replica {

// A recovering server counts as this late, however old the entries are that it has yet to run.
inline constexpr std::int64_t kRecoversLagNs = 1'000'000'000;

class Recovery {
 public:
  struct Rules {
    CheckpointRequests::Rules requests;
    std::uint64_t ring_bytes = 0;    // kept whole (log_keeper.h); 0: the log is not kept
    bool member = true;              // false: a replay, which takes no checkpoints
    bool on_disk = false;            // the log is also in a store
    bool skips_checkpoints = false;  // it runs all inputs
    bool needs_dumps = false;        // the server is in a container: CRIU could dump it
  };
  explicit Recovery(Rules rules);

  void step(const Event& event, const Facts& facts);
  // Returns the actions of step(), in order; empty: none.
  ActionList take_actions() noexcept { return std::exchange(out_, {}); }
  bool has_actions() const noexcept { return !out_.empty(); }
  std::int64_t due_ns() const noexcept;

  // A dump holds the log (TAKE-1).
  bool holds_log() const noexcept { return checkpointer_.holds(); }
  // The server, which is at `applied`, has reached the dump's entry, and waits for the dump.
  bool waits_for_dump(Index applied) const noexcept {
    return checkpointer_.holds() && applied >= checkpointer_.at();
  }
  // No checkpoint is being dumped or packed.
  bool idle() const noexcept { return checkpointer_.state() == Checkpointer::State::kIdle; }
  const CheckpointStatus& checkpoint() const noexcept { return checkpointer_.status(); }
  // The replica votes, and has no server (VOTES-1).
  bool acceptor_only() const noexcept { return acceptor_only_; }
  // The last entry of its log when it began.
  Index held() const noexcept { return log_end_; }
  bool catches_up() const noexcept { return catch_up_.active(); }
  // Requests in entries up to this one were for the previous process of this replica.
  Index missed() const noexcept { return catch_up_.missed(); }
  const RunMeter& meter() const noexcept { return meter_; }
  // Inputs wait for a checkpoint, because the log since the newest one fills the ring (KEEP-1).
  bool log_is_full() const noexcept { return keeper_.full(); }
  // Why CRIU cannot dump this server; empty: it can, or this is not known.
  const std::string& refusal() const noexcept { return tier_.refusal(); }
  const std::string& why_not_wanted() const noexcept { return requests_.why_not_wanted(); }

 private:
  ReplicaId self() const noexcept { return rules_.requests.self; }
  Mutant mutant() const noexcept { return rules_.requests.test_only_mutant; }
  void on(const Opened& event, const Facts& facts);
  void on(const Tick&, const Facts& facts);
  void on(const CheckpointCommitted& event, const Facts& facts);
  void on(const Prepared& event, const Facts& facts);
  void on(const Looked& event, const Facts& facts);
  void on(const Slid& event, const Facts& facts);
  void on(const Dumped& event, const Facts& facts);
  void on(const Packed& event, const Facts& facts);
  void on(const NotAdmitted& event, const Facts& facts);
  void on(const ServerRuns& event, const Facts& facts);
  void on(const ServerEnds&, const Facts& facts);
  void on(const ServerRan& event, const Facts& facts);
  void on(const ServerBehind& event, const Facts& facts);
  void on(const PeerCommitted& event, const Facts& facts);
  void on(const PeerCheckpoint& event, const Facts& facts);
  void on(const PeerRefusal& event, const Facts& facts);
  void on(const PeerWish& event, const Facts& facts);
  void on(const PeerWishRefused& event, const Facts& facts);
  void on(const CheckpointRequested& event, const Facts& facts);
  void on(const CheckpointSuggested&, const Facts& facts);
  void on(const Lacked& event, const Facts& facts);
  void on(const Proposed& event, const Facts& facts);
  void on(const Found& event, const Facts& facts);

  void begin_without_server(const Opened& event);
  void begin_to_catch_up(const Opened& event, const Facts& facts);
  void hurry_packing(const Facts& facts);
  void step_wish(const Facts& facts);
  void announce_checkpoints(const Facts& facts);
  void announce(const CheckpointNote& note, const Facts& facts);
  void receive_note(const CheckpointNote& note, std::int64_t now_ns);
  void keep_log(const Found* found, const Facts& facts);
  bool leads_others(const Facts& facts) const;
  bool are_followers_stalled(const Facts& facts) const;
  Index applied(const Facts& facts) const;
  void step_meter(const Facts& facts);

  const Rules rules_;
  ActionList out_;
  Checkpointer checkpointer_;
  CheckpointRequests requests_;
  RecoveryTier tier_;
  MissingEntries missing_;
  LogKeeper keeper_;
  CatchUp catch_up_;
  RunMeter meter_;
  PassedOnWish wish_;
  bool acceptor_only_ = false;
  bool server_runs_ = false;
  bool stopping_ = false;
  Index begins_{};              // the server began after this entry
  Index log_end_{};             // the last entry of this replica's log when the node began
  std::uint64_t given_up_ = 0;  // checkpoints that replicas reported as given up
  // This replica's checkpoints, taken and failed, that were reported to the others.
  std::uint64_t announced_ = 0, failed_ = 0;
  // Where the entry of this replica's last checkpoint ends in the log.
  std::uint64_t packed_end_ = 0;
  bool packed_by_criu_ = true;  // that checkpoint was made by CRIU
};

}  // namespace crane::replica
