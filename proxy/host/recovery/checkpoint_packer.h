// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checkpoints that this replica makes: the staging directory of the one under way, the process
// that packs and verifies it, and which of those on disk the log may be cut below.
//
//   begin(at) -> staging directory is filled -> pack(contents) -> packed()
//
// Threads: the node's one thread, inside its event loop; packing in a process of its own.
// INVARIANT PACK-1  Only one checkpoint is made at a time, from begin() until packed() or
//                   abandon().
// INVARIANT PACK-2  Consensus hears only of checkpoints that are verified and behind which this
//                   replica was compared with the others: of one that it might have to distrust
//                   later the log is not cut (IMAGE-5).

#include <event2/event.h>
#include <event2/event_struct.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/image.h"
#include "checkpoint/manifest.h"
#include "checkpoint/tree.h"
#include "checkpoint/worker.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "proxy/clients/woken.h"
#include "proxy/host/agreed.h"
#include "proxy/host/config.h"
#include "proxy/host/recovery/node_state.h"

namespace crane::node {

// What stands in a checkpoint beside the files.
struct CheckpointContents {
  NodeState state;
  nlohmann::json files;       // of file_names()
  std::string output_digest;  // of the outputs until then
  checkpoint::Tier tier = checkpoint::Tier::kCriu;
  nlohmann::json carried;  // of tier kRestart: what goes on with a new server
};

class CheckpointPacker {
 public:
  class Owner : public proxy::Woken {
   public:
    // What pack() began has ended; `why_not` is empty when the checkpoint is published and
    // verified.
    virtual void packed(checkpoint::Tier tier, Index at, const std::string& why_not) = 0;

   protected:
    ~Owner() = default;
  };

  // The references outlive it.
  CheckpointPacker(event_base* base, const Config& config, const Agreed& agreed, Owner& owner);
  ~CheckpointPacker();
  CheckpointPacker(const CheckpointPacker&) = delete;
  CheckpointPacker& operator=(const CheckpointPacker&) = delete;

  // --- making one
  // No checkpoint is under way (PACK-1).
  bool idle() const noexcept { return !staging_ && worker_.idle(); }
  Outcome begin(Index at);
  // REQUIRES: begun.
  const std::string& staging_path() const noexcept { return staging_->path; }
  std::string staging_upper() const { return staging_->upper(); }
  // Copies a file that the server maps there; `left_out` of it is not copied.
  Outcome copy_shared(const std::string& name,
                      std::span<const checkpoint::FileRange> left_out = {});
  Outcome pack(CheckpointContents contents);
  // A replica waits for the one that is packed, or the log for its end.
  void hurry() noexcept { worker_.hurry(); }
  bool packs() const noexcept { return !worker_.idle(); }
  // Where the entry of the one that was packed last ends in the log, bytes.
  std::uint64_t end() const noexcept { return end_; }
  checkpoint::Tier tier() const noexcept { return tier_; }
  // What was begun is removed, if anything was.
  void abandon();
  // The same, and the packing process ends.
  void stop();

  // --- which ones the log may be cut below
  // Those that a former run of this node left, of the group with this log.
  void find_own();
  // The newest one behind which all is equal up to `trusted`, once; nullopt: nothing new.
  std::optional<Index> take_relied(Index trusted);
  // This replica differed from the others somewhere behind entry `verified`: what it kept since
  // then may differ as well (FALCON 6.2).
  void distrust(std::uint64_t verified);

 private:
  Result<std::string> pack_here(CheckpointContents& contents);
  checkpoint::Manifest manifest_of(const CheckpointContents& contents) const;
  void keep_with_recording(const std::string& name);
  void advance();

  event_base* base_;
  const Config& config_;
  const Agreed& agreed_;
  Owner& owner_;
  checkpoint::Checkpoints checkpoints_;
  std::optional<checkpoint::Staging> staging_;  // of the one under way
  checkpoint::Worker worker_;
  event event_{};
  checkpoint::Tier tier_ = checkpoint::Tier::kCriu;  // of what is packed,
  Index at_{};                                       // and its entry,
  std::uint64_t end_ = 0;                            // which ends there
  std::vector<Index> own_;  // verified on disk and not relied on yet, ascending
  Index relied_{};          // what consensus knows of
};

}  // namespace crane::node
