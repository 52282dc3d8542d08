// SPDX-License-Identifier: Apache-2.0
#pragma once
// One replica: what it is made of, the order in which that runs, and what it may do where in its
// life.
//
// The parts, each a machine of its own, in the order of one round of the shell (Node::round):
//
//   clients/   what clients sent; held back while the lead is being handed over
//   role/      Service: is the role another one?  Then what was read is proposed, and grants
//   check/     Stalls, PortQuestions, Cuts: what they ask is answered by the same round's entries
//   recovery/  Recovery, ServerChange: they may hold the log, so they run before entries come
//   consensus  commits entries: to clients/, and to the server unless the log is held
//   role/      QuorumWatch, LeadWatch: behind what this round has committed
//   status/    SelfReport: at last, because it says what all others are now
//
// What holds in each state (`for a loss`: another replica may be lost because this one is there):
//
//   state          | as acceptor | server            | may lead          | for a loss | left by
//   no server      | votes       | none              | last choice,      | no         | Restart, at
//   a (VOTES-1)      |             |                   | hands it on       |            |
//   checkpoint catching up    | votes       | runs what it      | last choice, the  | no         |
//   CATCHUP-1, or
//                  |             | missed            | furthest first    |            | a Restart
//   lacking        | votes       | cannot go on      | no                | no         | Restart
//   holding        | votes       | at rest, for ms   | yes: the dump is  | yes        | ReleaseLog
//                  |             |                   | given up          |            | (TAKE-1)
//   packing        | votes       | runs              | yes               | yes        | Packed
//   following      | votes       | runs              | yes               | yes        | -
//   taking over    | votes       | runs, up to START | leads             | itself     | LEAD-2
//   serving        | votes       | runs              | leads             | itself     | LAG-1, a
//   view handing over   | votes       | runs; its output  | leads, not for    | no         | a view
//                  |             | waits             | long              |            |
//   restarting     | votes       | ends, begins      | yes               | no         |
//   ServerChange ended          | leaves soon | ended at a turn   | until it leaves   | no |
//   Shutdown
//
// Pure.  Threads: plain values.
// INVARIANT LIFE-1  A server is started once, behind the group's first START, and never in a
//                   replica that votes without one or whose server was handed over.

namespace crane::replica {

// Where a replica is in its life.
struct Life {
  bool member = true;          // false: it runs a recorded history again
  bool stopping = false;       // it was told to stop
  bool acceptor_only = false;  // it votes, and has no server (VOTES-1)
  bool begun = false;          // its server runs, or is being started
  bool ended = false;          // its server has ended at a turn
  bool given_away = false;     // its server has ended for another build of Crane (HANDOVER-1)
  bool reached_start = false;  // the server may run: the group's first START was admitted
  bool leads = false;          // consensus says so
  bool leads_on = false;       // and has not given the lead away since
  bool started = false;        // START was proposed in this view
  bool takes_clients = false;
  bool hands_over = false;  // clients are let in for the last time, and then the lead goes

  // Nothing stops it, and it has a server, which has not ended.
  bool goes_on() const noexcept { return !stopping && !ended && !acceptor_only; }
  bool may_start_server() const noexcept {  // LIFE-1
    return reached_start && !begun && !ended && !acceptor_only && !given_away;
  }
  // It proposes grants.
  bool may_propose() const noexcept { return started && goes_on(); }
  bool serves() const noexcept { return leads && goes_on() && takes_clients; }
  // Output waits for the next leader, also when the lead is gone unseen.
  bool holds_output() const noexcept { return hands_over || !leads_on; }
  // Another replica's server may be further, which ends this reign (LeadWatch); one without a
  // server leads only until another one can.
  bool may_give_lead_away() const noexcept {
    return member && leads && leads_on && !stopping && !hands_over && (goes_on() || acceptor_only);
  }
  bool reports_progress() const noexcept { return member && !acceptor_only; }
  bool watches_quorum() const noexcept { return member && !stopping; }
};

}  // namespace crane::replica
