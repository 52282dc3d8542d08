// SPDX-License-Identifier: Apache-2.0
#pragma once
// All that lets a replica recover, as one machine: the checkpoints that it takes, asks for and
// restarts at, how far the log stays whole, and what it missed.
//
// What holds in each state of a replica is in proxy/replica/replica.h.
//
// The order in which step() runs its parts: first the checkpoint that holds the log, because all
// else waits for it; then what is known (notes, requests), then what this replica lacks, at last
// how far the log is kept, which follows from all of these.
//
// Threads: the node's one thread.
// INVARIANT RECOVERY-1  At most one of a dump and a restart holds the log, and one waits for the
//                       other's checkpoint to be packed.

#include <cstdint>
#include <utility>

#include "proxy/replica/mutant.h"
#include "proxy/replica/recovery/catch_up.h"
#include "proxy/replica/recovery/checkpoint_requests.h"
#include "proxy/replica/recovery/checkpointer.h"
#include "proxy/replica/recovery/log_keeper.h"
#include "proxy/replica/recovery/missing_entries.h"
#include "proxy/replica/recovery/recovery_tier.h"
#include "proxy/replica/recovery/run_meter.h"
#include "proxy/replica/step.h"

namespace crane::replica {

// A server that recovers is taken for as late, however old what it has still to run is.
inline constexpr std::int64_t kRecoversLagNs = 1'000'000'000;

class Recovery {
 public:
  struct Rules {
    CheckpointRequests::Rules requests;
    std::uint64_t ring_bytes = 0;    // that are kept whole (log_keeper.h); 0: they are not
    bool member = true;              // a replay takes no checkpoints
    bool on_disk = false;            // the log is in a store as well
    bool skips_checkpoints = false;  // it runs all inputs
    bool needs_dumps = false;        // the server is in a container: CRIU could dump it
  };
  explicit Recovery(Rules rules);

  void step(const Event& event, const Facts& facts);
  // What step() asks for, in order; empty: nothing.
  ActionList take_actions() noexcept { return std::exchange(out_, {}); }
  bool has_actions() const noexcept { return !out_.empty(); }
  std::int64_t due_ns() const noexcept;

  // A dump holds the log (TAKE-1).
  bool holds_log() const noexcept { return checkpointer_.holds(); }
  // No checkpoint is being dumped or packed.
  bool idle() const noexcept { return checkpointer_.state() == Checkpointer::State::kIdle; }
  const CheckpointStatus& checkpoint() const noexcept { return checkpointer_.status(); }
  // The replica votes, and has no server (VOTES-1).
  bool acceptor_only() const noexcept { return acceptor_only_; }
  // Up to here it held the log when it began.
  Index held() const noexcept { return log_end_; }
  bool catches_up() const noexcept { return catch_up_.active(); }
  // What was asked of this replica up to here was asked of its life before.
  Index missed() const noexcept { return catch_up_.missed(); }
  const RunMeter& meter() const noexcept { return meter_; }
  // Inputs wait for a checkpoint, because the log since the newest one fills the ring (KEEP-1).
  bool log_is_full() const noexcept { return keeper_.full(); }
  // Why CRIU does not dump this server; empty: it does, as far as is known.
  const std::string& refusal() const noexcept { return tier_.refusal(); }
  const std::string& wanted_not() const noexcept { return requests_.wanted_not(); }

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
  void on(const CheckpointWanted& event, const Facts& facts);
  void on(const CheckpointHelps&, const Facts& facts);
  void on(const Lacked& event, const Facts& facts);
  void on(const Proposed& event, const Facts& facts);
  void on(const Found& event, const Facts& facts);

  void begin_without_server(const Opened& event);
  void begin_to_catch_up(const Opened& event, const Facts& facts);
  void hurry_packing(const Facts& facts);
  void announce_checkpoints(const Facts& facts);
  void announce(const CheckpointNote& note, const Facts& facts);
  void hear(const CheckpointNote& note, std::int64_t now_ns);
  void keep_log(const Found* found, const Facts& facts);
  bool leads_others(const Facts& facts) const;
  bool followers_stand(const Facts& facts) const;
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
  bool acceptor_only_ = false;
  bool server_runs_ = false;
  bool stopping_ = false;
  Index begins_{};              // the server began behind this entry
  Index log_end_{};             // of the own log, when the node began
  std::uint64_t given_up_ = 0;  // checkpoints that replicas said to have given up
  std::uint64_t announced_ = 0,
                failed_ = 0;      // of the own checkpoints, that the others were told of
  std::uint64_t packed_end_ = 0;  // where the entry of the last own one ends in the log,
  bool packed_by_criu_ = true;    // and what is in it
};

}  // namespace crane::replica
