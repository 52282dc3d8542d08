// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transfers a checkpoint from another host: both halves of the conversation of transfer_frame.h,
// over any connection.
//
// INVARIANT IMAGE-6  A sender gives only a verified checkpoint, and only to a replica that can use
//               it.  A receiver takes only a checkpoint of its group, log, program and version, and
//               names it only when every byte was checked (IMAGE-1).  An interrupted transfer
//               resumes where it stopped, whichever side was interrupted and however.
//
// Memory: a piece (kPieceMax) and the connection's buffers, however large the checkpoint.
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

// A connection to another replica; its maker has verified that the replica belongs to the group.
class Wire {
 public:
  virtual ~Wire() = default;
  // Sends all bytes. kPeerFailed: the other side is gone, or does not read.
  virtual Outcome put(std::span<const std::byte> bytes) = 0;
  // Receives at least one byte, at most to.size(); 0: the other side has closed the connection.
  // kPeerFailed: it is silent.
  virtual Result<std::size_t> get(std::span<std::byte> to) = 0;
};

// The result of serve().
struct Served {
  std::string name;  // the checkpoint that was sent, perhaps in part; empty: none
  std::uint64_t bytes = 0;
  bool lacks = false;  // this replica has no checkpoint for the receiver
  Index behind{};      // the receiver needs a checkpoint after this entry
};
// The sending half; returns when the other side closes.  `known`: the group has had contact with
// the receiver before, so it cannot be new.  Reports the bytes that the receiver has been sent, now
// or in an earlier attempt, to `here` (Options::bytes).
Result<Served> serve(Wire& wire, Checkpoints& here, bool known);

// The replicas to fetch from.
struct Others {
  std::vector<int> replicas;
  std::function<Result<std::unique_ptr<Wire>>(int replica)> dial;
};
struct Fetched {
  std::string name;
  Index index{};
  int from = -1;
  std::uint64_t bytes = 0, had = 0;  // received now, and in earlier attempts
  std::int64_t ms = 0;
};
// The receiving half: asks all replicas, and fetches a checkpoint that has arrived in part, else
// the newest; it ends up in `here`, verified.  `say`: gets progress lines for the operator.
// kNotFound: the replicas that answered have none.  kGone: they have none, and they know this
// replica from before.  kPeerFailed: no peer answered.  kBusy: a replica with a checkpoint broke
// off or could not send it; try later.  kExists: `here` has their checkpoint already, verified.
// kFull, kDamaged, kSystem, ...: see the sentence.
using LogLine = std::function<void(const std::string& line)>;
Result<Fetched> fetch_newest(const Others& others, const Expected& expected, Index behind,
                             Checkpoints& here, const LogLine& say);

}  // namespace crane::checkpoint
