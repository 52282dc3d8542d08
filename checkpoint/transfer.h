// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a replica gets a checkpoint of another host's: both halves of the conversation that
// transfer_frame.h describes, over any connection.
//
// INVARIANT IMAGE-6  Only a verified checkpoint is given, and only to who could use it; what
//               arrives is taken only if it is of the receiver's group, log, program and version,
//               and gets its name only when every byte of it was checked (IMAGE-1).  What was
//               interrupted, on either side and however, goes on where it stopped.
//
// Memory: a piece (kPieceMax) and what the connection holds, however large the checkpoint.
//
// Threads: plain functions that block for as long as disks and the other side do, so a node runs
// them in a Worker (worker.h), which may be killed at any moment.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/image.h"
#include "checkpoint/transfer_frame.h"

namespace crane::checkpoint {

// A connection to another replica; whoever made it has seen to it that it is one of the group's.
class Wire {
 public:
  virtual ~Wire() = default;
  // All of it is on its way.  kPeerFailed: the other side is gone, or does not take it.
  virtual Outcome put(std::span<const std::byte> bytes) = 0;
  // At least one byte, at most to.size(); 0: the other side has ended the connection.
  // kPeerFailed: it is silent.
  virtual Result<std::size_t> get(std::span<std::byte> to) = 0;
};

// What came of a visit.
struct Served {
  std::string name;  // what was given, or a part of it; empty: nothing
  std::uint64_t bytes = 0;
  bool lacks = false;  // there is nothing here for it
  Index behind{};      // what it needs must be behind this entry
};
// The sending half, until the other side leaves.  `known`: the group has heard of the receiver
// before, so it cannot be new.
Result<Served> serve(Wire& wire, Checkpoints& here, bool known);

// Whom to fetch from.
struct Others {
  std::vector<int> replicas;
  std::function<Result<std::unique_ptr<Wire>>(int replica)> dial;
};
struct Fetched {
  std::string name;
  Index index{};
  int from = -1;
  std::uint64_t bytes = 0, had = 0;  // that came, and of former attempts
  std::int64_t ms = 0;
};
// The receiving half: asks all of them, and takes what is there in part already, else the newest;
// it ends up in `here`, verified.  `say`: what goes on, for the operator.
// kNotFound: who answered has none.  kGone: nor that, and they know this replica from before.
// kPeerFailed: no peer answered.  kBusy: who has one left in the
// middle, or could not give it; later, perhaps.  kExists: what they have is here already, verified.
// kFull, kDamaged, kSystem, ...: see the sentence.
using SayLine = std::function<void(const std::string& line)>;
Result<Fetched> fetch_newest(const Others& others, const Expected& expected, Index behind,
                             Checkpoints& here, const SayLine& say);

}  // namespace crane::checkpoint
