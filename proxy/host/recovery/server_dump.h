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
  ServerDump(ServerParts& parts, CheckpointPacker& packer) : parts_(parts), packer_(packer) {}
  ServerDump(const ServerDump&) = delete;
  ServerDump& operator=(const ServerDump&) = delete;

  // --- the actions of checkpointer.h
  // A process of CRIU gets ready; the monitor tells when it has.
  Outcome prepare(Index at);
  // The log is held from here on: the last entry that was delivered is the place.
  Index begin_place();
  replica::Looked look(Index at);
  // The server gets one more entry of what is held; 0: none is.
  Index slide();
  // REQUIRES: quiescent (TAKE-2).  The monitor tells when it has ended.
  Outcome dump();
  // The log goes on: what was held is delivered in its order.
  void release_log();
  // The packer tells when it has ended.
  Outcome pack();
  // Nothing of it goes on.
  void discard();

  // What the monitor told: why there is no dump; empty: it is there, with all that was copied.
  std::string dumped(const std::string& why_not);
  void packed(const std::string& why_not) {
    if (why_not.empty()) last_times_ = times_;
  }
  const DumpTimes& last_times() const noexcept { return last_times_; }

 private:
  bool admitted(Index at);
  std::string blocker();
  void note_entry(const consensus::EntryView& entry);
  bool boosts() const;
  Outcome copy_shared_state();

  ServerParts& parts_;
  CheckpointPacker& packer_;
  CheckpointContents contents_;
  DumpTimes times_;        // of the one under way
  DumpTimes last_times_;   // of the last published one
  std::string no_copies_;  // why the copies of what the server maps are not there
};

}  // namespace crane::node
