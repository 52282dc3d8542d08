// SPDX-License-Identifier: Apache-2.0
// Replicas' notes about themselves, and a replica's knowledge about a silent one.
#include "proxy/replica/status/peer_notes.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace crane::replica {
namespace {

constexpr std::int64_t kMs = 1'000'000;

struct Pair {
  PeerNotes notes{ReplicaId{0}};
  std::vector<consensus::MemberStatus> members{2};
  control::Readiness own;
  std::int64_t now_ns = 1;

  Pair() {
    members[0].id = ReplicaId{0};
    members[1].id = ReplicaId{1};
    members[0].connected = members[1].connected = true;
    own.runs = true;
  }
  // Returns how many notes are sent now.
  std::size_t step(std::int64_t passes_ns = 0, bool arrives = true) {
    now_ns += passes_ns;
    const auto to = notes.due(note_of(own, 7), members, now_ns);
    for (const ReplicaId peer : to) notes.sent(peer, arrives, now_ns);
    return to.size();
  }
  PeerView seen() const { return notes.seen(ReplicaId{1}, ReplicaId{1}, now_ns); }
};

}  // namespace

TEST_CASE("peer notes: a change is sent at once and repeated a few times, then there is silence",
          "[node]") {
  Pair p;
  CHECK(p.step() == 1);
  CHECK(p.step() == 0);
  for (unsigned i = 0; i < PeerNotes::kRepeats; ++i) {
    CHECK(p.notes.due_ns() == p.now_ns + PeerNotes::kRepeatNs);
    CHECK(p.step(PeerNotes::kRepeatNs) == 1);
  }
  CHECK(p.step(10'000 * kMs) == 0);
  CHECK(p.notes.due_ns() == replica::kNever);
  p.own.takes_clients = true;
  CHECK(p.step() == 1);
}

TEST_CASE("peer notes: a replica that recovers or is late keeps reporting how far it is",
          "[node]") {
  for (const bool recovers : {false, true}) {
    Pair p;
    p.own.recovers = recovers;
    p.own.lag_ms = recovers ? 0 : control::kNearMs + 1;
    for (unsigned i = 0; i < 3 * PeerNotes::kRepeats; ++i) {
      CHECK(p.step(PeerNotes::kRepeatNs) == 1);
      CHECK(p.step() == 0);
    }
  }
}

TEST_CASE("peer notes: a note that was not sent is sent again, and a new peer gets one", "[node]") {
  Pair p;
  CHECK(p.step(0, false) == 1);
  CHECK(p.notes.due_ns() != replica::kNever);
  CHECK(p.step(PeerNotes::kRepeatNs) == 1);
  p.members[1].connected = false;
  CHECK(p.step(10'000 * kMs) == 0);
  p.members[1].connected = true;
  CHECK(p.step() == 1);
}

// NOTES-1
TEST_CASE("peer notes: the notes of a process are forgotten with it", "[node]") {
  Pair p;
  p.members[1].connected = false;
  p.step();
  CHECK_FALSE(p.seen().was_there);
  p.members[1].connected = true;
  p.step();
  CHECK_FALSE(p.seen().reported);
  p.notes.on_report(ReplicaId{1}, note_of(p.own, 5), p.now_ns);
  REQUIRE(p.seen().reported);
  CHECK(p.seen().applied == 5);
  p.members[1].connected = false;
  p.step(5'000 * kMs);
  CHECK_FALSE(p.seen().reported);
  CHECK(p.seen().was_there);
  // Its first note may arrive before its connection is seen.
  p.notes.on_report(ReplicaId{1}, note_of(p.own, 6), p.now_ns);
  p.members[1].connected = true;
  p.step();
  CHECK(p.seen().reported);
}

// NOTES-2
TEST_CASE("peer notes: a peer that said that it is drained is not regarded as lost", "[node]") {
  DrainedNote own;
  own.add(ReplicaId{1});
  Pair p;
  p.step();
  CHECK_FALSE(p.seen().drained);
  CHECK(p.notes.drained().empty());
  p.members[1].connected = false;
  p.step();
  CHECK(p.seen().drained == false);
  p.members[1].connected = true;
  p.step();
  p.notes.on_drained(ReplicaId{1}, own);
  CHECK_FALSE(p.seen().drained);  // it is still there
  CHECK(p.notes.drained().empty());
  p.members[1].connected = false;
  p.step();
  CHECK(p.seen().drained == true);
  CHECK(p.notes.drained().has(ReplicaId{1}));
  // It was resumed, and is lost now.
  p.members[1].connected = true;
  p.step();
  CHECK_FALSE(p.seen().drained);
  p.members[1].connected = false;
  p.step();
  CHECK(p.seen().drained == false);
  // The note may arrive after the end of the connection was seen.
  p.notes.on_drained(ReplicaId{1}, own);
  CHECK(p.seen().drained == true);
}

// NOTES-2
TEST_CASE("peer notes: what others say counts only of a peer that was never seen", "[node]") {
  PeerNotes notes{ReplicaId{0}};
  std::vector<consensus::MemberStatus> members(4);
  for (std::uint8_t i = 0; i < 4; ++i) members[i].id = ReplicaId{i};
  members[1].connected = members[2].connected = true;
  const auto step = [&] { (void)notes.due({}, members, 1); };
  const auto drained = [&](std::uint8_t peer) {
    return notes.seen(ReplicaId{peer}, ReplicaId{1}, 1).drained;
  };
  step();
  CHECK(notes.is_new(ReplicaId{1}));
  notes.sent(ReplicaId{1}, true, 1);
  CHECK_FALSE(notes.is_new(ReplicaId{1}));
  members[2].connected = false;
  step();
  DrainedNote others;
  for (const auto who : {ReplicaId{0}, ReplicaId{2}, ReplicaId{3}}) others.add(who);
  CHECK_FALSE(drained(3));
  notes.on_drained(ReplicaId{1}, others);
  CHECK(drained(3) == true);
  CHECK(drained(2) == false);  // this process saw it go
  CHECK_FALSE(drained(1));
  CHECK(notes.drained().has(ReplicaId{3}));
  CHECK_FALSE(notes.drained().has(ReplicaId{0}));
  members[3].connected = true;
  step();
  CHECK_FALSE(drained(3));
  CHECK(notes.drained().empty());
}

TEST_CASE("peer notes: who asks also gets the facts of the machine, which end with the connection",
          "[node]") {
  Pair p;
  p.step();
  CHECK_FALSE(p.notes.is_asked_by(ReplicaId{1}));
  PeerNote question = note_of(p.own, 5);
  question.asks = 1;
  p.notes.on_report(ReplicaId{1}, question, p.now_ns);
  CHECK(p.notes.is_asked_by(ReplicaId{1}));
  p.notes.sent(ReplicaId{1}, true, p.now_ns);
  CHECK_FALSE(p.notes.is_asked_by(ReplicaId{1}));
  HostNote note;
  note.disk_bytes = 7;
  p.notes.on_host(ReplicaId{1}, note);
  CHECK(p.notes.seen(ReplicaId{1}, ReplicaId{0}, p.now_ns).host->disk_bytes == 7);
  p.members[1].connected = false;
  p.now_ns += PeerNotes::kAnswerNs;
  p.step();
  CHECK_FALSE(p.notes.seen(ReplicaId{1}, ReplicaId{0}, p.now_ns).host);
  p.members[1].connected = true;
  p.step();
  CHECK_FALSE(p.notes.seen(ReplicaId{1}, ReplicaId{0}, p.now_ns).host);
}

TEST_CASE("peer notes: a peer whose note is old is asked, and is silent if it does not answer",
          "[node]") {
  Pair p;
  p.step();
  p.notes.on_report(ReplicaId{1}, note_of(p.own, 5), p.now_ns);
  CHECK(p.notes.ask(p.now_ns).empty());
  p.now_ns += PeerNotes::kOldNs;
  CHECK(p.notes.ask(p.now_ns).size() == 1);
  CHECK(p.notes.ask(p.now_ns).empty());  // once
  CHECK_FALSE(p.seen().silent);
  p.now_ns += PeerNotes::kAnswerNs + 1;
  CHECK(p.seen().silent);
  p.notes.on_report(ReplicaId{1}, note_of(p.own, 5), p.now_ns);
  CHECK_FALSE(p.seen().silent);
}

TEST_CASE("peer notes: a question is answered, even if all was sent already", "[node]") {
  Pair p;
  for (unsigned i = 0; i <= PeerNotes::kRepeats; ++i) p.step(PeerNotes::kRepeatNs);
  PeerNote question = note_of(p.own, 5);
  question.asks = 1;
  p.notes.on_report(ReplicaId{1}, question, p.now_ns);
  CHECK(p.notes.due_ns() <= p.now_ns);
  CHECK(p.step() == 1);
  CHECK(p.step() == 0);
}

TEST_CASE("peer notes: a leader reports to which peers it sends the log", "[node]") {
  Pair p;
  p.step();
  PeerNote note = note_of(p.own, 5);
  p.notes.on_report(ReplicaId{1}, note, p.now_ns);
  // It does not lead: its note does not decide that.
  CHECK(p.notes.receives_log(ReplicaId{1}, ReplicaId{0}));
  note.flags |= PeerNote::kLeads;
  p.notes.on_report(ReplicaId{1}, note, p.now_ns);
  CHECK_FALSE(p.notes.receives_log(ReplicaId{1}, ReplicaId{70}));
  note.receives_log[1] = 1U << 6;
  p.notes.on_report(ReplicaId{1}, note, p.now_ns);
  CHECK(p.notes.receives_log(ReplicaId{1}, ReplicaId{70}));
}

TEST_CASE("peer notes: every field of a replica's note is transferred", "[node]") {
  control::Readiness own;
  own.runs = own.recovers = own.needs_checkpoint = own.no_room = true;
  own.lag_ms = 300;
  own.progress = {1, 2, 3, 4};
  own.why_not = std::string(200, 'x');
  const control::Readiness readiness = readiness_of(note_of(own, 5));
  CHECK(readiness.why_not.size() == sizeof PeerNote{}.why_not - 1);
  own.why_not = readiness.why_not;
  CHECK(to_json(readiness) == to_json(own));
}

}  // namespace crane::replica
