// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a replica is after a start in disk mode: its store and what is left of its memory, put
// together (DESIGN C5).  The node and the simulator run the same function.
//
//   memory   store          the replica
//   there    there          goes on where it stood; its store is brought up from its ring
//   gone     there          its ring is filled from the store's tail, then it goes on
//   none     new, unused    is new, if it never was a member
//   any      damaged, less than the memory or the high mark say, or gone: a learner (U8)
//
// With a checkpoint beyond the store's end it stays the voter it was, and its log begins there:
// what it holds and what it promised is not less for that (README.md, Checkpoints).
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
  std::string why;            // when start.kind is kLost: what was wrong, in words
  bool starts_again = false;  // the store was thrown away, because the checkpoint is beyond its end
};

// `log_id`: the group's; `was_member`: something beside the store says that this replica was one;
// `checkpoint`: where the server stands, nullptr: at the beginning.  `acceptor_only`: there is no
// server, and the store need not reach back to the checkpoint, which may tell the members.
// kBadArgument: store or checkpoint are of another group; kGone: the store does not reach back to
// the checkpoint, or the members are not known.
Result<Recovered> recover(Store& store, const Memory& memory, std::uint64_t log_id, bool was_member,
                          const core::Checkpoint* checkpoint = nullptr, bool acceptor_only = false);

// Of a group that was brought back from a backup, in which a checkpoint is all that is left: a
// replica whose store is new takes the place of the member that the checkpoint's list names, as if
// its own log had ended before.  To be called before recover(), and only where no replica of the
// group can hold anything else; `was_member` as there: then nothing happens.
Outcome take_place(Store& store, std::uint64_t log_id, ReplicaId self, bool was_member,
                   const core::Checkpoint& checkpoint);

// The same of a backup that holds the log behind its checkpoint, in the file `tail`: the store
// begins before that, and holds all of it, as committed.  The member is the one that the newest
// list names, in the tail or in `checkpoint`, which is the backup's or a newer one of the restored
// group. Does the rest of one that was interrupted.  kDamaged: the file is no such tail; nothing
// was changed.
Outcome take_place_with(const std::string& tail, Store& store, std::uint64_t log_id, ReplicaId self,
                        bool was_member, const core::Checkpoint& checkpoint);

}  // namespace crane::consensus::store
