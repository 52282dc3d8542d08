// SPDX-License-Identifier: Apache-2.0
#pragma once
// A checkpoint of this replica's server (checkpointer.h), as it is carried out: the container is
// prepared, the log held, CRIU dumps the processes while the segment is copied, and the packer gets
// all of it.
//
// Threads: the node's one thread.
// INVARIANT DUMP-1  What is noted, copied and dumped is as of one entry: the last one that the
//                   server was given before the log was held, or that it slid to.

#include <cstdint>
#include <functional>
#include <string>

#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "proxy/host/recovery/checkpoint_packer.h"
#include "proxy/host/recovery/recovery_status.h"
#include "proxy/host/recovery/server_parts.h"
#include "proxy/replica/recovery/checkpointer.h"

namespace crane::node {

class ServerDump {
 public:
  // The references outlive it.
  ServerDump(ServerParts& parts, CheckpointPacker& packer);
  ServerDump(const ServerDump&) = delete;
  ServerDump& operator=(const ServerDump&) = delete;

  // A CHECKPOINT entry for this replica was handed to the server.
  void asked(std::int64_t now_ns, Index at);
  void refuse(Index at, const std::string& why) { machine_.refuse(at, why); }
  void refuse_for_now(Index at) { machine_.refuse_for_now(at); }
  // What the guard tells; `why_not` is empty when the dump is there.
  void prepared();
  void dumped(const std::string& why_not);
  // What the packer tells.
  void packed(const std::string& why_not);
  // A checkpoint without processes is there (server_restart.h).
  void restarted(Index at, std::int64_t pack_ns) { machine_.restarted(at, pack_ns); }
  // The server is ended, and another one takes its place.
  void server_ends(std::int64_t now_ns);

  // Does what there is to do; when to look again at the latest.  `leads_others`: clients of others
  // would wait for it.
  std::int64_t step(std::int64_t now_ns, bool leads_others);

  bool holds_log() const noexcept { return machine_.holds(); }
  bool idle() const noexcept { return machine_.state() == replica::Checkpointer::State::kIdle; }
  const replica::CheckpointStatus& status() const noexcept { return machine_.status(); }
  const DumpTimes& last_times() const noexcept { return last_times_; }
  // Nothing of it goes on.
  void discard();
  // The log goes on: what was held is delivered in its order.
  void release_log();

 private:
  replica::CheckpointActions actions();
  Outcome prepare();
  Index begin_place();
  bool admitted();
  std::string blocker();
  Index slide();
  void note_entry(const consensus::EntryView& entry);
  Outcome dump();
  bool boosts() const;
  Outcome copy_shared_state();
  Outcome publish();

  ServerParts& parts_;
  CheckpointPacker& packer_;
  replica::Checkpointer machine_;
  CheckpointContents contents_;
  DumpTimes times_;        // of the one under way
  DumpTimes last_times_;   // of the last published one
  std::string no_copies_;  // why the copies of what the server maps are not there
};

}  // namespace crane::node
