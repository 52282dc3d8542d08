// SPDX-License-Identifier: Apache-2.0
#pragma once
// One replica: its parts, the order in which they run, and what the replica may do in each state.
//
// The parts are separate machines.  One round of the shell (Node::round) runs them in this order:
//
//   clients/   what clients sent; held back while leadership is being handed over
//   role/      Service: has the role changed?  Then what was read is proposed, and grants
//   check/     Stalls, PortQuestions, Cuts: the entries of the same round answer their questions
//   recovery/  Recovery, ServerChange: they may hold the log, so they run before entries arrive
//   consensus  commits entries: to clients/, and to the server unless the log is held
//   role/      QuorumWatch, LeadWatch: after everything that this round has committed
//   status/    SelfReport: last, because it reports what the other parts are now
//
// The states.  `for a loss` says whether this replica allows the group to lose another one.
//
//   state        | as acceptor | server            | may lead         | for a loss | left by
//   no server    | votes       | none              | last choice,     | no         | Restart, at a
//   (VOTES-1)    |             |                   | hands it on      |            | checkpoint
//   catching up  | votes       | runs what it      | last choice, the | no         | CATCHUP-1, or
//                |             | missed            | furthest first   |            | a Restart
//   lacking      | votes       | cannot continue   | no               | no         | Restart
//   holding      | votes       | stopped for some  | yes: the dump is | yes        | ReleaseLog
//                |             | milliseconds      | given up         |            | (TAKE-1)
//   packing      | votes       | runs              | yes              | yes        | Packed
//   following    | votes       | runs              | yes              | yes        | -
//   taking over  | votes       | runs, up to START | leads            | itself     | LEAD-2
//   serving      | votes       | runs              | leads            | itself     | LAG-1, a view
//   handing over | votes       | runs; its output  | leads, briefly   | no         | a view
//                |             | waits             |                  |            |
//   restarting   | votes       | ends, begins      | yes              | no         | ServerChange
//   ended        | leaves soon | ended at a turn   | until it leaves  | no         | Shutdown
//
// Pure.  Threads: plain values.
// INVARIANT LIFE-1  A server is started once, after the group's first START, and never in a replica
//                   that votes without a server or whose server was handed over.

namespace crane::replica {

// The state of a replica.
struct Life {
  bool member = true;               // false: it replays a recorded history
  bool stopping = false;            // the replica was ordered to stop
  bool acceptor_only = false;       // it votes, and has no server (VOTES-1)
  bool begun = false;               // its server runs, or is being started
  bool ended = false;               // its server has ended at a turn
  bool server_handed_over = false;  // its server has ended for another build of Crane (HANDOVER-1)
  bool reached_start = false;       // the server may run: the group's first START was admitted
  bool leads = false;               // according to consensus
  bool keeps_leading = false;       // it leads, and has not given leadership away since
  bool started = false;             // START was proposed in this view
  bool takes_clients = false;
  bool hands_over = false;  // it admits the last clients, and then gives leadership away

  // The replica is not stopping, and it has a server that has not ended.
  bool is_active() const noexcept { return !stopping && !ended && !acceptor_only; }
  bool may_start_server() const noexcept {  // LIFE-1
    return reached_start && !begun && !ended && !acceptor_only && !server_handed_over;
  }
  // The replica proposes grants.
  bool may_propose() const noexcept { return started && is_active(); }
  bool serves() const noexcept { return leads && is_active() && takes_clients; }
  // Output waits for the next leader, also when leadership was lost unnoticed.
  bool holds_output() const noexcept { return hands_over || !keeps_leading; }
  // LeadWatch may end this reign because another replica's server is further.  A replica without a
  // server leads only until another one can.
  bool can_hand_over_lead() const noexcept {
    return member && leads && keeps_leading && !stopping && !hands_over &&
           (is_active() || acceptor_only);
  }
  bool reports_progress() const noexcept { return member && !acceptor_only; }
  bool watches_quorum() const noexcept { return member && !stopping; }
};

}  // namespace crane::replica
