// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a replica begins: with a new server at the log's beginning, or at a checkpoint.  At a
// checkpoint either the server's processes are restored (CRIU), or a new server continues with its
// files (restart).
//
//   find() --segment, log--> take_up() --server runs--> resume()
//
// Threads: the node's one thread.
// INVARIANT START-1  A replica begins at the newest usable checkpoint of its own log, and without a
//                    gap: the restored processes or files are as of the entry after which it
//                    requests the log from consensus.
// INVARIANT START-2  A restored server is the one that the group's configuration names.

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

// Checkpoints at which a replica of this configuration may begin: those of this machine, newest
// first, but distrusted ones last.  For a replay: the checkpoint that it begins with.
std::vector<checkpoint::Kept> checkpoints_to_try(const Config& config);

// State that a new server on the old files takes over; "carried" in a checkpoint's state.
nlohmann::json to_json(const dmt::CarriedState& carried);
// kDamaged: not the output of to_json().
Result<dmt::CarriedState> carried_of(const nlohmann::json& state);

class StartingPoint {
 public:
  // The references must outlive it.  `member`: false for a replay, which does not compare its
  // configuration.
  StartingPoint(const Config& config, const Agreed& agreed, bool member)
      : config_(config), agreed_(agreed), member_(member) {}

  // Chooses and unpacks a checkpoint, if there is one.  On an error the node cannot begin.
  Outcome find();
  // The node has begun with entries in its log and without a checkpoint: all inputs run again.
  void replays_log() { recovered_by_ = "replay"; }

  bool at_checkpoint() const noexcept { return !directory_.empty(); }
  // Whether the server's processes are restored; otherwise a new server starts.
  bool restores_processes() const noexcept { return at_checkpoint() && upper_.empty(); }
  // Whether it was to begin at a checkpoint but runs all inputs again.
  bool runs_all_again() const noexcept { return config_.restore && !at_checkpoint(); }
  // The position to begin at in the log; nullopt: the end that consensus finds.
  std::optional<consensus::Checkpoint> log_position() const;
  // The unpacked checkpoint; "": none.
  const std::string& directory() const noexcept { return directory_; }
  // The initial files of a new server; "": the machine's.
  const std::string& upper() const noexcept { return upper_; }
  // The state of the checkpoint; without one, the initial state.
  const NodeState& state() const noexcept { return state_; }
  const dmt::CarriedState& carried() const noexcept { return carried_; }

  // Entries of checkpoints that could not be unpacked or used.
  std::span<const Index> unusable() const noexcept { return unusable_; }
  // Whether there is a distrusted checkpoint after the position at which the replica was to begin.
  bool skipped_distrusted() const;
  // The own log begins after that position, and no replica has a server.  The next process begins
  // after it, at a distrusted checkpoint if there is no other.
  void note_log_lost() const;
  // The replica differed from the others at log index `at`.  The checkpoint at which it began may
  // be the cause, so it gets a mark.
  void differed(Index at) const;
  // The server did not start, or died before it had run what it missed.  If it continued at a
  // checkpoint, that gets the same mark, at its own index: CRIU may dump a server that it cannot
  // restore on this machine, or not to life.
  void server_failed() const;

  // The server runs: renames its files and removes the unpacked checkpoint.  `why` is for the
  // operator.
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
  std::optional<Index> take_lost_start() const;
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
  std::string json_;  // the node's state as stored in the checkpoint
  NodeState state_;
  dmt::CarriedState carried_{};
  ReturnTimes times_;
  const char* recovered_by_ = "";
  std::string changed_;  // how a checkpoint's configuration differs
  std::vector<Index> unusable_;
};

}  // namespace crane::node
