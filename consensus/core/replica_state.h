// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a replica (replica.h) knows, by what it is for.  Candidacy and Reign exist in their role
// only (role_state.h); the rest outlives roles.
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

// --- of one role --------------------------------------------------------------------------------

// A candidate, from its campaign until it leads or steps down: whose log it adopts.
struct Candidacy {
  ReplicaId source = kNoReplica;  // none: the own log is the best
  Viewstamp source_last{};
  Index source_commit{};
  std::uint64_t source_end_pos = 0;
  Viewstamp adopted_last{};  // of the log with which it began to lead
  Cursor at;                 // adopted up to here
  std::uint64_t have = 0;    // bytes behind it that were read
  bool outstanding = false;  // a read is
  Members asked;             // in force when grants were first asked for in view
  View asked_in{};           // this one (only a mutant goes on with them)
};

// A leader, from its START on.
struct Reign {
  std::uint64_t progress_ns = 0;    // when something was last committed, or nothing waited for it
  std::uint64_t start_end_pos = 0;  // behind the own START
  std::uint64_t intact_pos = 0;     // from here on the ring is known to hold the log
  bool count_held = false;          // there may be more that is covered
  Index covering{};                 // by TRUNCATION entries that were proposed
};

// --- of all roles -------------------------------------------------------------------------------

// How this replica entered the log.
struct Entrance {
  std::optional<Checkpoint> checkpoint;  // until the log is entered
  bool checkpoint_too_old = false;
  Index began{};        // the log begins behind this entry
  Index again_to{};     // delivered again up to here, from what was whole (CORE-C6)
  bool placed = false;  // at a checkpoint ahead of what a leader knows of this log
};

// Whether entries flow: heartbeats are then read and written more often.
struct Traffic {
  std::uint64_t active_until_ns = 0;
  std::uint64_t begin_ns = 0;  // of the entries counted
  std::uint64_t entries = 0;
};

// The own store (disk mode), and what it costs.
struct Durable {
  StoreCursor store;
  Index told{};                            // to the leader
  Index giving_commit{}, stored_commit{};  // which the store was told, is being told
  View promise_stored{};                   // in memory mode always the promise
  std::uint64_t promise_asked_ns = 0;
  std::uint64_t promise_took_ns = 0;  // the last one, until it was durable; memory mode: 0
};

// What stores may lose (disk mode).
struct Truncation {
  Index held{};                  // the own newest checkpoint
  Index held_known{};            // ... as the leader of the promised view said to know
  std::uint64_t held_at_ns = 0;  // when to tell it again
  Index covered{};               // by TRUNCATION entries that were delivered
  Index dropped{};               // from the own store
};

// Being a member, and becoming one.
struct Membership {
  std::vector<ConfigAt> configs;  // the newest committed CONFIG, then those behind it in the log
  bool was_member = false;        // under any incarnation
  bool needs_checkpoint = false;
  std::uint64_t join_at_ns = 0;
  unsigned join_power = 0;
  ReplicaId transfer_to = kNoReplica;  // the lead is handed over
  std::uint64_t transfer_until_ns = 0;
  std::uint64_t leaves_at_ns = 0;  // of a leader that is removed; 0: not planned yet
  std::vector<std::byte> bytes;    // of a CONFIG that is proposed
};

// The writer of this replica's log.
struct Permission {
  ReplicaId writer = kNoReplica;
  FenceState fence = FenceState::kNone;
  GrantState grant = GrantState::kNone;  // of an answer that waits,
  ReplicaId grant_to{};                  // to whom,
  View grant_view{};                     // and in which view
  Cursor stale_end;                      // only for a mutant
  unsigned revokes_left = 0;             // of a restart
};

// The own heartbeat, and reading the leader's.
struct Heartbeat {
  std::uint64_t own = 0;
  std::uint64_t own_at_ns = 0;  // the next one
  std::uint64_t period_ns = 0;
  std::uint64_t seen = 0;  // the leader's,
  std::uint64_t moved_ns = 0;
  std::uint64_t landed_ns = 0;  // log bytes of the leader
  std::uint64_t read_at_ns = 0;
  std::uint64_t read_sent_ns = 0;
  std::uint32_t read_epoch = 0;
  bool read_late = false;
  bool read_outstanding = false;
};

// When this replica seeks the lead, and how the last one was lost.
struct Seeking {
  std::uint64_t campaign_at_ns = 0;  // 0: none planned
  std::uint64_t deadline_ns = 0;     // of the phase
  unsigned lost_races = 0;
  View prevote_view{};             // 0: none under way
  std::vector<bool> prevote_yes;   // by replica
  std::optional<Message> refused;  // another one's pre-vote, while the leader seemed to live
  bool transfer = false;           // the leader asked for it
  bool abdicated = false;          // this replica gave the lead up, and none has led since
  unsigned yields = 0;        // to replicas whose servers are further, since the leader was lost;
  Index yielded_to{};         // the furthest of these servers has run as much
  std::uint64_t lost_ns = 0;  // when the leader was lost; 0: it is there
  ElectionCause lost_why{};
  ElectionStatus last{};  // the last election
};

}  // namespace crane::consensus::core
