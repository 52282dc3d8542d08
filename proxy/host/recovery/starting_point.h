// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a replica begins: with a new server at the log's beginning, or at a checkpoint, of which
// the server's processes recover (CRIU) or a new server goes on with its files (restart).
//
//   find() --segment, log--> take_up() --server runs--> resume()
//
// Threads: the node's one thread.
// INVARIANT START-1  A replica begins at the newest checkpoint of its own log that can be used, and
//                    behind no gap: what CRIU or the files bring back is as of the entry from which
//                    it asks consensus for the rest.
// INVARIANT START-2  A server that recovers is the one that the group's configuration names.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/kept.h"
#include "checkpoint/manifest.h"
#include "consensus/consensus.h"
#include "dmt/base/clock.h"
#include "dmt/base/result.h"
#include "dmt/layout.h"
#include "dmt/restart.h"
#include "proxy/host/agreed.h"
#include "proxy/host/config.h"
#include "proxy/host/recovery/node_state.h"
#include "proxy/host/recovery/recovery_status.h"
#include "proxy/host/server_monitor.h"
#include "proxy/replica/recovery/beginning.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

// Checkpoints that a replica of this configuration might begin at: those of this machine, newest
// first, but the distrusted ones last; of a replay the one that it begins with.
std::vector<checkpoint::Kept> checkpoints_to_try(const Config& config);

// What of a server goes on with the next one on its files; in a checkpoint's state as "carried".
nlohmann::json to_json(const dmt::Carried& carried);
// kDamaged: not what to_json() makes.
Result<dmt::Carried> carried_of(const nlohmann::json& state);

class StartingPoint {
 public:
  // The references outlive it.  `member`: a replay does not compare its configuration.
  StartingPoint(const Config& config, const Agreed& agreed, bool member)
      : config_(config), agreed_(agreed), member_(member) {}

  // Chooses and unpacks a checkpoint, if there is one.  An error: the node cannot begin.
  Outcome find();
  // It began with entries in its log and without a checkpoint: all inputs run again.
  void replays_log() { recovered_by_ = "replay"; }

  bool at_checkpoint() const noexcept { return !directory_.empty(); }
  // The server's processes recover; else a new server starts.
  bool revives() const noexcept { return at_checkpoint() && upper_.empty(); }
  // It was to begin at a checkpoint, and runs all inputs again.
  bool runs_all_again() const noexcept { return config_.restore && !at_checkpoint(); }
  // Where to begin in the log; nullopt: where consensus finds its end.
  std::optional<consensus::Checkpoint> log_position() const;
  // The unpacked checkpoint; "": there is none.
  const std::string& directory() const noexcept { return directory_; }
  // What a new server's files begin as; "": the machine's.
  const std::string& upper() const noexcept { return upper_; }
  // Of the checkpoint; as new without one.
  const NodeState& state() const noexcept { return state_; }
  const dmt::Carried& carried() const noexcept { return carried_; }

  // Checkpoints at these entries could not be unpacked, or are not what they seem.
  std::span<const Index> unusable() const noexcept { return unusable_; }
  // A distrusted checkpoint is there behind the place where the replica was to begin.
  bool left_one_out() const;
  // The own log begins behind that place, and no replica has a server: the next life begins behind
  // it, at a distrusted checkpoint if there is no other.
  void log_gone() const;
  // The replica differed from the others at log index `at`: the checkpoint that it began at may be
  // the cause.
  void differed(Index at) const;

  // The server runs: its files get their names, and what was unpacked goes.  `why` is for people.
  Outcome resume(dmt::Layout& layout, const ServerMonitor& monitor, std::string& why);
  // True until resume().
  bool resumes() const noexcept { return !json_.empty(); }
  replica::BeginRules rules() const noexcept {
    return {config_.restore, config_.may_begin, config_.skip_checkpoints,
            !config_.checkpoint.empty()};
  }

  const ReturnTimes& times() const noexcept { return times_; }
  std::int64_t since_begin_ns() const { return monotonic_ns() - began_ns_; }
  // "criu", "restart", "replay"; "": it began with the group.
  const char* recovered_by() const noexcept { return recovered_by_; }

 private:
  bool is_unusable(Index at) const noexcept;
  enum class Attempt : std::uint8_t { kUsable, kUnusable, kOtherConfiguration };
  std::optional<Index> take_gone() const;
  Attempt try_one(const checkpoint::Listed& one, const std::string& target);
  std::optional<std::string> changed_since(const std::string& path) const;
  Outcome rename_open_files(dmt::Layout& layout, const ServerMonitor& monitor,
                            std::string& why) const;
  void cut_server_log() const;
  std::int64_t since_begin_us() const { return since_begin_ns() / 1000; }

  const Config& config_;
  const Agreed& agreed_;
  const bool member_;
  const std::int64_t began_ns_ = monotonic_ns();
  std::string directory_, upper_;
  std::string path_;  // of the checkpoint that was unpacked
  std::string json_;  // the node's state as it stands in the checkpoint
  NodeState state_;
  dmt::Carried carried_{};
  ReturnTimes times_;
  const char* recovered_by_ = "";
  std::string changed_;  // why a checkpoint is of another configuration
  std::vector<Index> unusable_;
};

}  // namespace crane::node
