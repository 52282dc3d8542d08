// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recovers a replica at a start in disk mode from its store and what is left of its memory (DESIGN
// C5).  The node and the simulator run the same function.
//
//   memory   store          the replica
//   there    there          continues where it was; its store catches up from its ring
//   gone     there          fills its ring from the store's tail, then continues
//   none     new, unused    is new, if it never was a member
//   any      damaged, less than the memory or the high mark record, or gone: a learner (U8)
//
// With a checkpoint beyond the store's end the replica stays the voter it was, and its log begins
// there: this loses nothing that it holds or promised (README.md, Checkpoints).
//
// Threads: one.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "consensus/core/step.h"
#include "consensus/log_tail.h"
#include "consensus/store/store.h"

namespace crane::consensus::store {

struct Memory {
  bool survived = false;  // log memory and cells are those of an earlier incarnation
  core::Cell promise{};   // the surviving kPromiseCell
  std::span<std::byte> log;
  std::uint64_t ring_bytes = 0;
  std::uint32_t payload_bytes_max = 0;
};

struct Recovered {
  core::Start start;
  // The replica's identity if it is not lost.
  std::uint32_t incarnation = 0;
  // Committed entries up to here are delivered from the store, later ones by the core.
  Index replay_to{};
  std::string why;            // when start.kind is kLost: the reason as text
  bool starts_again = false;  // the store was discarded, because the checkpoint is beyond its end
};

// The cursor after entry `index`, which the store holds or begins after.
Result<core::Cursor> cursor_at(Store& store, Index index);

// `log_id`: the group's.  `was_member`: a record outside of the store shows that this replica was a
// member.  `checkpoint`: the server's state; nullptr: at the log's beginning.  `acceptor_only`:
// there is no server, and the store need not reach back to the checkpoint, which may contain the
// members. kBadArgument: store or checkpoint belong to another group; kGone: the store does not
// reach back to the checkpoint, or the members are unknown.
Result<Recovered> recover(Store& store, const Memory& memory, std::uint64_t log_id, bool was_member,
                          const core::Checkpoint* checkpoint = nullptr, bool acceptor_only = false);

// For a group restored from a backup, in which only a checkpoint is left: a replica whose store is
// new takes the place of the member that the checkpoint's list names, as if its own log had ended
// earlier. Must be called before recover(), and only if no replica of the group can hold anything
// else.  If `was_member` (see recover()), nothing happens.
Outcome take_place(Store& store, std::uint64_t log_id, ReplicaId self, bool was_member,
                   const core::Checkpoint& checkpoint);

// take_place() for a backup that contains the log after its checkpoint, in the file `tail`: the
// store then begins where the tail begins, and holds all of it, as committed.  The member is the
// one that the newest list names, in the tail or in `checkpoint`, which is the backup's or a newer
// one of the restored group.  Completes an interrupted call.  kDamaged: the file is not a valid
// tail, and nothing was changed.
Outcome take_place_with(const std::string& tail, Store& store, std::uint64_t log_id, ReplicaId self,
                        bool was_member, const core::Checkpoint& checkpoint);

}  // namespace crane::consensus::store
