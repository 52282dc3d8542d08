// SPDX-License-Identifier: Apache-2.0
#pragma once
// Carries out a restart: ends the server and starts another one on its files.  The decisions are
// made by a state machine (server_change.h).  This class handles the files, the segment, the
// server's monitor, and the form of requests and entries.
//
// Threads: the node's one thread.

#include <cstdint>
#include <string>

#include "dmt/base/ids.h"
#include "dmt/restart.h"
#include "dmt/sequence/output.h"
#include "proxy/host/recovery/checkpoint_packer.h"
#include "proxy/host/recovery/server_dump.h"
#include "proxy/host/recovery/server_parts.h"
#include "proxy/replica/action_loop.h"
#include "proxy/replica/recovery/server_change.h"
#include "runtime/control/schema.h"

namespace crane::node {

class ServerRestart {
 public:
  // The references must outlive it.  `upper`: the initial files of the first server; "": the
  // machine's files.
  ServerRestart(ServerParts& parts, CheckpointPacker& packer, ServerDump& dump, EventSink& events,
                std::string upper, const dmt::CarriedState& carried);
  ServerRestart(const ServerRestart&) = delete;
  ServerRestart& operator=(const ServerRestart&) = delete;

  // --- the leader's
  // An operator requests a restart; returns the answer (control).
  std::string ask();
  // An operator requests another command line for the server; returns the answer (control).
  std::string ask_upgrade(const control::Message& request);
  // An operator requests that another build of Crane continues; returns the answer (control).
  std::string ask_hand_over(const control::Message& request);

  // --- every replica's
  // A RESTART entry, before the server gets it.
  void committed(const consensus::EntryView& entry);
  void admitted(Index at) {
    if (machine_.awaits(at)) step(replica::change::Admitted{at});
  }
  // The server's main process ended at a turn; false: the end was not requested.
  bool ended_at_turn();
  // It could not be started, or took no turn; false: it is not on trial.
  bool failed_to_start(const std::string& why);
  // Whether clients must not get this output yet (UPGRADE-1).
  bool holds_back(const OutputHeader& header, const ListenPlace& place);
  // The kernel has ended the server; false: the end was not requested.
  bool ended();
  // The packer has finished.
  void packed(Index at, const std::string& why_not);
  // Carries out what is due; returns the latest time of the next call.  Completes `tick`.
  std::int64_t step(replica::change::Tick tick, std::int64_t now_ns);

  bool holds_log() const noexcept { return machine_.holds_log(); }
  bool under_way() const noexcept { return machine_.under_way(); }
  bool handed_over() const noexcept { return machine_.handed_over(); }
  bool busy() const noexcept { return machine_.busy(); }
  const replica::Upgrade& upgrade() const noexcept { return machine_.upgrade(); }
  // The initial files of the next server; "": the machine's.
  const std::string& upper() const noexcept { return upper_; }

 private:
  std::string answer_to(replica::change::OperatorRequest asked);
  void step(const replica::change::Event& event);
  void carry_out_all(const replica::change::Event& event, std::int64_t now_ns);

  void carry_out(const replica::change::Answer& answer);
  void carry_out(const replica::change::Propose& proposal);
  void carry_out(const replica::change::KeepFiles& keep);
  void carry_out(const replica::change::LeaveFiles&);
  void carry_out(replica::change::NotePlace& note);
  void carry_out(const replica::change::LookWhetherOver&);
  void carry_out(const replica::change::NoteServer& note);
  void carry_out(const replica::change::EndServer&);
  void carry_out(const replica::change::BeginServer& begin);
  void carry_out(const replica::change::HandOver&);
  void carry_out(const replica::change::LetIn& output);
  void carry_out(const replica::change::ReleaseLog&);
  void carry_out(const replica::change::Publish& publish);
  void carry_out(const replica::change::AbandonPacking&);
  void carry_out(const replica::change::Published& published);
  void carry_out(const replica::change::NotPublished& published);
  void carry_out(const replica::change::Fail& failure);
  void carry_out(const replica::change::EndHandedOver& end);
  void carry_out(const replica::change::LogMessage& words);

  bool is_over();
  void close_all();
  void note_dead_server();
  void stop_server();
  void take_files();
  Outcome renew_segment();
  Outcome publish(Index at);
  void forget_files();

  ServerParts& parts_;
  CheckpointPacker& packer_;
  ServerDump& dump_;
  EventSink& events_;
  replica::ServerChange machine_;
  replica::ActionLoop<replica::change::ActionList> loop_;
  std::string answer_;
  std::string upper_;
  std::string kept_;             // place for the files of the ending or ended server
  CheckpointContents contents_;  // as of the entry at which it ended
  dmt::CarriedState carried_;    // likewise
};

}  // namespace crane::node
