// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of a replica (replica.h), grouped by purpose.  Candidacy and Reign exist only in their
// role (role_state.h); the rest outlives roles.
//
// Threads: plain values.

#include <cstdint>
#include <optional>
#include <vector>

#include "consensus/core/commit.h"
#include "consensus/core/log.h"
#include "consensus/core/membership.h"
#include "consensus/core/pull_score.h"
#include "consensus/core/step.h"
#include "consensus/core/transitions.h"
#include "dmt/base/ids.h"

namespace crane::consensus::core {

// --- state of one role --------------------------------------------------------------------------

// A candidate, from its campaign until it leads or steps down: the log that it adopts.
struct Candidacy {
  ReplicaId source = kNoReplica;  // kNoReplica: the candidate's log is the best
  Viewstamp source_last{};
  Index source_commit{};
  std::uint64_t source_end_pos = 0;
  Viewstamp adopted_last{};  // last entry of the log with which it began to lead
  Cursor at;                 // adopted up to here
  std::uint64_t have = 0;    // bytes read after `at`
  bool outstanding = false;  // a read is under way
  Members asked;             // members in force at the first request for grants ...
  View asked_in{};           // ... in this view (only a mutant keeps using them)
};

// A leader, from its START on.
struct Reign {
  std::uint64_t progress_ns = 0;    // time of the last commit, or when no entry waited for one
  std::uint64_t start_end_pos = 0;  // end of this leader's START
  std::uint64_t intact_pos = 0;     // from here on the ring is known to hold the log
  bool count_held = false;          // a majority may cover more: count again
  Index covering{};                 // proposed in TRUNCATION entries
};

// --- state of all roles -------------------------------------------------------------------------

// How this replica entered the log.
struct Entrance {
  std::optional<Checkpoint> checkpoint;  // until the log is entered
  bool checkpoint_too_old = false;
  Index began{};        // the log begins after this entry
  Index again_to{};     // entries up to here are delivered again, if the ring is whole (CORE-C6)
  bool placed = false;  // at a checkpoint after the end of this log that a leader knows
};

// Whether entries flow: heartbeats are then more frequent.
struct Traffic {
  std::uint64_t active_until_ns = 0;
  std::uint64_t begin_ns = 0;  // start of the counted period
  std::uint64_t entries = 0;
};

// This replica's store (disk mode), and its cost.
struct Durable {
  StoreCursor store;
  Index reported{};                        // index last reported to the leader
  Index giving_commit{}, stored_commit{};  // commit index being given to the store, and stored
  View promise_stored{};                   // in memory mode always equal to the promise
  std::uint64_t promise_asked_ns = 0;
  std::uint64_t promise_took_ns = 0;  // time until the last promise was durable; memory mode: 0
};

// Which entries stores may drop (disk mode).
struct Truncation {
  Index held{};                  // this replica's newest checkpoint
  Index held_known{};            // ... that the leader of the promised view has confirmed
  std::uint64_t held_at_ns = 0;  // when to report it again
  Index covered{};               // by delivered TRUNCATION entries
  Index dropped{};               // dropped from this replica's store
};

// Membership of this replica, and how it joins.
struct Membership {
  std::vector<ConfigAt> configs;  // the newest committed CONFIG, then the later ones in the log
  bool was_member = false;        // under any incarnation
  bool needs_checkpoint = false;
  std::uint64_t join_at_ns = 0;
  unsigned join_power = 0;
  ReplicaId transfer_to = kNoReplica;  // leadership is being transferred to it
  std::uint64_t transfer_until_ns = 0;
  std::uint64_t leaves_at_ns = 0;  // when a removed leader hands over; 0: not planned yet
  std::vector<std::byte> bytes;    // of a proposed CONFIG
};

// The writer of this replica's log.
struct Permission {
  ReplicaId writer = kNoReplica;
  FenceState fence = FenceState::kNone;
  GrantState grant = GrantState::kNone;  // of the pending answer,
  ReplicaId grant_to{};                  // its receiver,
  View grant_view{};                     // and its view
  Cursor stale_end;                      // only for a mutant
  unsigned revokes_left = 0;             // revokes that a restart waits for
};

// This replica's heartbeat, and the reads of the leader's.
struct Heartbeat {
  std::uint64_t own = 0;
  std::uint64_t own_at_ns = 0;  // when the next one is due
  std::uint64_t period_ns = 0;
  std::uint64_t seen = 0;  // last value of the leader's counter
  std::uint64_t moved_ns = 0;
  std::uint64_t landed_ns = 0;  // when log bytes of the leader last landed
  std::uint64_t read_at_ns = 0;
  std::uint64_t read_sent_ns = 0;
  std::uint32_t read_epoch = 0;
  bool read_late = false;
  bool read_outstanding = false;
};

// The attempts of this replica to lead, and how the last leader was lost.
struct Seeking {
  std::uint64_t campaign_at_ns = 0;  // 0: none planned
  std::uint64_t deadline_ns = 0;     // of the phase
  unsigned lost_races = 0;
  View prevote_view{};             // 0: none under way
  std::vector<bool> prevote_yes;   // by replica
  std::optional<Message> refused;  // pre-vote refused because the leader seemed alive
  bool transfer = false;           // the leader requested it
  bool abdicated = false;          // this replica gave up the lead, and no other has led since
  unsigned yields = 0;        // since the leader was lost, to replicas whose servers have run more
  Index yielded_to{};         // how far the furthest of these servers has run
  std::uint64_t lost_ns = 0;  // when the leader was lost; 0: there is a leader
  ElectionCause lost_why{};
  ElectionStatus last{};  // the last election
};

}  // namespace crane::consensus::core
