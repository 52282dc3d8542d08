// SPDX-License-Identifier: Apache-2.0
#pragma once
// The server is ended and another one started on its files (restarter.h), as it is carried out: on
// all replicas at one place of the log, which is then published as a checkpoint without processes.
//
// A hand-over is a restart whose next server is of another build of Crane, with another version of
// the schedule: the node publishes that checkpoint, and ends.
//
// Threads: the node's one thread.
// INVARIANT RESTART-1  Each server's end is asked for once per view, by a leader whose own server
//                      ended or did not for kEndNs.
// INVARIANT RESTART-2  What goes on with the new server is noted when the old one can do nothing
//                      any more, and published only after the new one runs.
// INVARIANT HANDOVER-1  Behind the entry at which a server ends for another build, this build gives
//                       nothing to any server, and lets no client in.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "dmt/restart.h"
#include "dmt/sequence/output.h"
#include "proxy/host/recovery/checkpoint_packer.h"
#include "proxy/host/recovery/server_parts.h"
#include "proxy/replica/recovery/restarter.h"
#include "proxy/replica/recovery/upgrade.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

struct ServerRestartActions {
  // A RESTART entry.
  std::function<Result<Index>(GrantTurns grant, std::span<const std::byte> body)> propose;
  std::function<GrantTurns()> input_grant;
  // As if the server had put it out.
  std::function<void(const OutputHeader& header)> put_out;
  // What keeps_back() kept back.
  std::function<void(const OutputHeader& header)> let_in;
  std::function<void()> release_log;
  // The replica cannot go on.
  std::function<void(ExitStatus status, const std::string& why)> failed;
  // A checkpoint at `at` was not made.
  std::function<void(Index at, const std::string& why)> refused;
};

class ServerRestart {
 public:
  // `upper`: what the first server's files begin as, "" the machine's.  The references outlive it.
  ServerRestart(ServerParts& parts, CheckpointPacker& packer, std::string upper,
                const dmt::Carried& carried, ServerRestartActions actions);
  ServerRestart(const ServerRestart&) = delete;
  ServerRestart& operator=(const ServerRestart&) = delete;

  // --- the leader's
  // An operator asks for it, or the schedule; the answer (control).
  std::string ask(std::int64_t now_ns);
  // An operator wants another command line for the server (control); the answer.
  std::string ask_upgrade(const nlohmann::json& request);
  // .. or another build of Crane to go on.
  std::string ask_hand_over(const nlohmann::json& request);

  // --- every replica's
  // A RESTART entry, before the server gets it.
  void committed(const consensus::EntryView& entry);
  void admitted(Index at);
  // The server's main process ended at a turn; false: by itself.
  bool ended_at_turn();
  // It could not be started, or took no turn; false: it is not on trial.
  bool failed_to_start(const std::string& why);
  // Whether clients must not know of this yet (UPGRADE-1).
  bool keeps_back(const OutputHeader& header);
  // For the kernel; false: that was not asked for.
  bool ended();

  struct Seen {
    bool serves = false;     // it leads and takes clients,
    bool may_lead = false;   // and its server admitted START, and nothing stops it
    bool done = false;       // the replica has come to its end
    bool publishes = false;  // a checkpoint of this replica may be made now
    bool member = true;      // and what is there is worth one: a voter that has caught up
    Index missed{};          // up to here what is asked was asked of an earlier life
    std::string refusal;     // why CRIU does not dump this server
  };
  // Does what there is to do; when to look again at the latest.
  std::int64_t step(const Seen& seen, std::int64_t now_ns);

  bool holds_log() const noexcept { return machine_.holds() || handed_over_; }  // HANDOVER-1
  // The server ends, or has ended.
  bool under_way() const noexcept { return machine_.state() != replica::Restarter::State::kIdle; }
  bool handed_over() const noexcept { return handed_over_; }
  // No checkpoint by CRIU can be made beside it.
  bool busy() const noexcept { return under_way() || due_ || upgrade_.open() || handed_over_; }
  const replica::Upgrade& upgrade() const noexcept { return upgrade_; }
  // What the next server's files begin as; "": the machine's.
  const std::string& upper() const noexcept { return upper_; }
  // The packer is done with what it was given; how long that took.
  std::int64_t packed(std::int64_t now_ns) noexcept {
    return now_ns - std::exchange(packing_ns_, 0);
  }
  // The node ends, if the server has ended for another build; `why_not`: its files are not kept.
  void end_handed_over(const std::string& why_not);

 private:
  void propose_begin(const Seen& seen, std::int64_t now_ns);
  void judge_trial(const Seen& seen, std::int64_t now_ns);
  std::string why_not_now(const char* without_container) const;
  std::string propose_end(const RestartBody& body, const std::string& next);
  void take_next(const consensus::EntryView& entry, const RestartBody& body);
  void take_upgrade(const nlohmann::json& next, Index at, std::uint32_t patience_s);
  void trial_failed(const std::string& why, bool dead);
  void note_dead_server();
  void ask_by_schedule(const Seen& seen, std::int64_t now_ns);
  void publish(std::int64_t now_ns);
  bool is_over();
  void close_all();
  void end_server();
  void begin_new_server();
  void hand_over();
  bool renew_segment();
  void forget_files();

  ServerParts& parts_;
  CheckpointPacker& packer_;
  const ServerRestartActions actions_;
  replica::Restarter machine_;
  std::string upper_;
  std::string kept_;               // where the files of the server go that ends, or has ended
  bool gone_ = false;              // for the kernel, while another one is to take its place
  bool due_ = false;               // to be published
  bool worth_ = false;             // Seen::member, as of the last step,
  Index missing_until_{};          // and Seen::missed
  CheckpointContents contents_;    // as of the place where it ended
  dmt::Carried carried_;           // likewise
  View begin_proposed_{};          // here, for the server that ends
  std::int64_t ending_ns_ = 0;     // since when it ends; 0: it does not
  std::int64_t asked_ns_ = 0;      // when the schedule last asked,
  std::uint64_t asked_after_ = 0;  // and how many inputs there were before
  std::int64_t packing_ns_ = 0;    // since when; 0: nothing is packed
  std::string next_build_;         // for whose server this one ends; "": ours
  bool handed_over_ = false;       // and has ended
  replica::Upgrade upgrade_;
  std::int64_t trial_ns_ = 0, listens_ns_ = 0;  // since when; 0: it is not, does not
  View judged_{};                               // the view in which the trial was ended from here
  std::vector<OutputHeader> kept_back_;         // of the server on trial, in order
};

}  // namespace crane::node
