// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checkpoints that this replica makes: the staging directory of the current one, the process
// that packs and verifies it, and the checkpoints on disk before which the log may be truncated.
//
//   begin(at) -> staging directory is filled -> pack(contents) -> packed()
//
// Threads: the node's one thread, inside its event loop; packing runs in another process.
// INVARIANT PACK-1  Only one checkpoint is made at a time, from begin() until packed() or
//                   abandon().
// INVARIANT PACK-2  A checkpoint is reported to consensus only when it is verified and this replica
//                   was compared with the others after it.  A checkpoint that might be distrusted
//                   later must not lead to a truncation of the log (IMAGE-5).

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
#include "runtime/control/progress.h"

namespace crane::node {

// The content of a checkpoint besides the files.
struct CheckpointContents {
  NodeState state;
  nlohmann::json files;       // of file_names()
  std::string output_digest;  // of the outputs up to it
  checkpoint::Tier tier = checkpoint::Tier::kCriu;
  nlohmann::json carried;  // for tier kRestart: state for the new server
};

class CheckpointPacker {
 public:
  class Owner : public proxy::Woken {
   public:
    // The packing begun by pack() has ended; `why_not` is empty if the checkpoint is published and
    // verified.
    virtual void packed(checkpoint::Tier tier, Index at, const std::string& why_not) = 0;

   protected:
    ~Owner() = default;
  };

  // The references must outlive it.
  CheckpointPacker(event_base* base, const Config& config, const Agreed& agreed, Owner& owner);
  ~CheckpointPacker();
  CheckpointPacker(const CheckpointPacker&) = delete;
  CheckpointPacker& operator=(const CheckpointPacker&) = delete;

  // --- making one
  // Whether no checkpoint is being made (PACK-1).
  bool idle() const noexcept { return !staging_ && worker_.idle(); }
  Outcome begin(Index at);
  // REQUIRES: begin() was called.
  const std::string& staging_path() const noexcept { return staging_->path; }
  std::string staging_upper() const { return staging_->upper(); }
  // Copies a shared file of the server to the staging directory, without the ranges `left_out`.
  Outcome copy_shared(const std::string& name,
                      std::span<const checkpoint::FileRange> left_out = {});
  Outcome pack(CheckpointContents contents);
  // A replica waits for the checkpoint, or the log needs it: packs faster.
  void hurry() noexcept { worker_.hurry(); }
  bool packs() const noexcept { return !worker_.idle(); }
  // REQUIRES: packs().
  control::Operation operation() const {
    return {"checkpoint", worker_.progress(), meter_.progress()};
  }
  // The end of the last packed checkpoint's entry in the log, bytes.
  std::uint64_t end() const noexcept { return end_; }
  checkpoint::Tier tier() const noexcept { return tier_; }
  // Removes the staging directory, if there is one.
  void abandon();
  // As abandon(), and ends the packing process.
  void stop();

  // --- checkpoints before which the log may be truncated
  // Finds the checkpoints of this group and log that an earlier process of this node left.
  void find_own();
  // The newest checkpoint verified by an equal cut up to `trusted`, once; nullopt: no new one.
  std::optional<Index> take_relied(Index trusted);
  // This replica differed from the others somewhere after entry `verified`: removes its checkpoints
  // after that entry, which may differ as well (FALCON 6.2).
  void distrust(std::uint64_t verified);

 private:
  Result<std::string> pack_here(CheckpointContents& contents,
                                const checkpoint::Worker::Report& report);
  checkpoint::Manifest manifest_of(const CheckpointContents& contents) const;
  void keep_with_recording(const std::string& name);
  void advance();

  event_base* base_;
  const Config& config_;
  const Agreed& agreed_;
  Owner& owner_;
  checkpoint::Checkpoints checkpoints_;
  std::optional<checkpoint::Staging> staging_;  // of the current checkpoint
  checkpoint::Worker worker_;
  control::ProgressMeter meter_;  // of its bytes
  event event_{};
  checkpoint::Tier tier_ = checkpoint::Tier::kCriu;  // tier of the packed checkpoint
  Index at_{};                                       // its entry
  std::uint64_t end_ = 0;                            // the end of that entry, bytes
  std::vector<Index> own_;  // verified on disk and not relied on yet, ascending
  Index relied_{};          // as reported to consensus
};

}  // namespace crane::node
