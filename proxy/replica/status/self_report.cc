// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/status/self_report.h"

#include <utility>

namespace crane::replica {

bool SelfReport::must_write(const Glance& glance, std::int64_t now_ns) {
  const Mark mark{glance.server_pid, glance.divergences, glance.checkpoints, glance.catches_up};
  if (mark != mark_) {
    mark_ = mark;
    changed(now_ns);
  }
  if (now_ns < write_at_ns_) return false;
  write_at_ns_ = kNever;
  return true;
}

bool SelfReport::must_report(const Glance& glance, std::int64_t now_ns) {
  const ReportedState state{glance.role,          glance.view,    glance.answering,
                            glance.takes_clients, glance.no_room, glance.server_pid,
                            not_serving_};
  // A server that has something to run may be late soon; no event reports that.
  if (glance.has_more_to_run && recheck_at_ns_ == kNever) recheck_at_ns_ = now_ns + kMovesNs;
  if (state == reported_ && now_ns < std::min(notes_.due_ns(), recheck_at_ns_)) return false;
  reported_ = state;
  return true;
}

void SelfReport::looked(const Glance& glance, std::span<const ListenQueue> queues, bool rests,
                        const std::string& stuck, std::int64_t now_ns) {
  const bool runs = glance.server_pid > 0;
  serving_.look(queues, runs && rests, now_ns);
  not_serving_ = serving_.why_not(runs, glance.server_exit, now_ns);
  if (!stuck.empty() && glance.server_exit < 0) not_serving_ = stuck;
  // The server's listen() causes no event.
  const bool starts = runs && serving_.starts(true, glance.server_exit);
  look_at_ns_ = starts ? now_ns + ServingWatch::kLookEveryNs : kNever;
}

control::Readiness SelfReport::readiness(const Glance& glance, const Report& report) const {
  control::Readiness r;
  r.runs = glance.server_pid > 0;
  r.acceptor_only = glance.acceptor_only;
  r.starts = !r.acceptor_only && serving_.starts(r.runs, glance.server_exit);
  r.takes_clients = glance.takes_clients;
  r.recovers = report.recovers;
  r.needs_checkpoint = report.needs_checkpoint;
  r.paced = report.held_ns > control::kNearMs * 1'000'000;
  r.no_room = glance.no_room;
  // When this replica leads, its server runs everything at once.
  r.held = report.waits_at_leader && !glance.leads;
  r.lag_ms = report.behind_ns / 1'000'000;
  r.progress = report.progress;
  r.why_not = r.acceptor_only ? report.why_no_server : not_serving_;
  return r;
}

SelfReport::Note SelfReport::note_to_send(const control::Readiness& own, const Glance& glance,
                                          Index applied, const consensus::GroupStatus& group,
                                          std::int64_t now_ns) {
  Note reported{note_of(own, value(applied)), {}};
  PeerNote& note = reported.note;
  if (group.needs_checkpoint) note.flags |= PeerNote::kNeedsCheckpoint;
  if (group.fetching) note.flags |= PeerNote::kRecovers;
  // Two facts change without an event: to which peers a leader sends the log, and how late a server
  // is that has something to run.
  bool moves = own.lag_ms > 0 || own.recovers || glance.has_more_to_run;
  if (glance.leads) {
    note.flags |= PeerNote::kLeads;
    for (const consensus::MemberStatus& m : group.members) {
      const bool written = m.streaming || m.id == self_;
      if (written) note.receives_log[value(m.id) / 64] |= std::uint64_t{1} << (value(m.id) % 64);
      moves = moves || (m.connected && !written);
    }
  }
  recheck_at_ns_ = moves ? now_ns + kMovesNs : kNever;
  reported.to = notes_.due(note, group.members, now_ns);
  return reported;
}

namespace {

// The state of a member according to its notes.
control::ReplicaView seen_as(const consensus::MemberStatus& member, const PeerView& peer,
                             bool leads) {
  using Member = control::ReplicaView::Member;
  using Contact = control::ReplicaView::Contact;
  control::ReplicaView one;
  one.replica = value(member.id);
  one.member = member.role == consensus::MemberRole::kVoter       ? Member::kVoter
               : member.role == consensus::MemberRole::kReturning ? Member::kReturning
                                                                  : Member::kOther;
  const Contact absent = peer.drained.value_or(false) ? Contact::kDrained
                         : peer.was_there             ? Contact::kGone
                                                      : Contact::kNotYet;
  one.seen = !member.connected ? absent
             : peer.silent     ? Contact::kSilent
             : peer.reported   ? Contact::kReported
                               : Contact::kNotReported;
  one.receives_log = leads ? member.streaming : peer.receives_log;
  if (peer.reported) one.readiness = *peer.reported;
  one.readiness.needs_checkpoint = one.readiness.needs_checkpoint || member.needs_checkpoint;
  return one;
}

}  // namespace

control::GroupView seen_by(const KnownMembers& known,
                           const std::map<std::uint8_t, PeerView>& peers) {
  control::GroupView group;
  group.knows_members = !known.members.empty();
  if (known.leader) group.leader = value(*known.leader);
  group.no_quorum = known.no_quorum;
  group.alarm = known.alarm;
  group.unsupervised = known.unsupervised;
  for (const consensus::MemberStatus& m : known.members) {
    const auto peer = peers.find(value(m.id));
    group.replicas.push_back(
        seen_as(m, peer == peers.end() ? PeerView{} : peer->second, known.leads));
    if (m.id != known.self) continue;
    control::ReplicaView& own = group.replicas.back();
    own.seen = control::ReplicaView::Contact::kReported;
    own.readiness = known.own;
    own.receives_log = known.leads || known.receives_log;
  }
  return group;
}

}  // namespace crane::replica
