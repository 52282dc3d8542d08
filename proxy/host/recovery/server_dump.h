// SPDX-License-Identifier: Apache-2.0
#pragma once
// Carries out a checkpoint of this replica's server (checkpointer.h): the container is prepared and
// the log held; CRIU dumps the processes while the segment is copied; the packer gets the result.
//
// Threads: the node's one thread.
// INVARIANT DUMP-1  All noted, copied and dumped state is as of one entry: the last entry that the
//                   server got before the log was held, or to which it slid.

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
  // The references must outlive it.
  ServerDump(ServerParts& parts, CheckpointPacker& packer) : parts_(parts), packer_(packer) {}
  ServerDump(const ServerDump&) = delete;
  ServerDump& operator=(const ServerDump&) = delete;

  // --- the actions of checkpointer.h
  // Starts a CRIU process; the monitor reports when it is ready.
  Outcome prepare(Index at);
  // From now on the log is held: the place is the last delivered entry.
  Index begin_place();
  replica::Looked look(Index at);
  // Delivers one more held entry to the server; 0: none is held.
  Index slide();
  // REQUIRES: quiescent (TAKE-2).  The monitor reports the end.
  Outcome dump();
  // Releases the log: held entries are delivered in order.
  void release_log();
  // The packer reports the end.
  Outcome pack();
  // Cancels the dump and removes its files.
  void discard();

  // The monitor's result: why there is no dump, or "" if the dump and all copies are complete.
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
  DumpTimes times_;        // of the current dump
  DumpTimes last_times_;   // of the last published one
  std::string no_copies_;  // why the shared files were not copied
};

}  // namespace crane::node
