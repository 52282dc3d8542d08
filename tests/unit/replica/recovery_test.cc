// SPDX-License-Identifier: Apache-2.0
// GOAL    The recovery machine as a whole accepts every event in every state, and its parts agree.
// METHOD  A shell that carries out each action as crane-node does, or lets it fail; events in
//         random order (the seed is printed, and taken from CRANE_SEED), including stale ones.
// CHECKS  REPLICA-S1 to REPLICA-S5, RECOVERY-1, TAKE-1, VOTES-1, CATCHUP-1.
#include "proxy/replica/recovery/recovery.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

using namespace crane;
using namespace crane::replica;

namespace {

constexpr std::int64_t kMs = 1'000'000;

// Replica 1 of three.
class Shell {
 public:
  explicit Shell(std::uint64_t seed) : random_(seed), machine_(rules()) {
    for (std::uint8_t i = 0; i < 3; ++i) {
      MemberView m;
      m.id = ReplicaId{i};
      m.role = consensus::MemberRole::kVoter;
      members_.push_back(m);
    }
  }

  void open(bool acceptor_only) {
    Opened event;
    event.acceptor_only = acceptor_only;
    event.last = Index{below(20)};
    event.at_checkpoint = one_in(2);
    event.restores = event.at_checkpoint || one_in(2);
    if (event.at_checkpoint) event.begins = {{View{1}, event.last}, 100};
    facts_.taken = facts_.for_server = event.last;
    feed(event);
  }

  void random_event() {
    change_facts();
    switch (below(16)) {
      case 0:
        return feed(CheckpointCommitted{commit(), ReplicaId{1}});
      case 1:
        return feed(CheckpointCommitted{commit(), ReplicaId{2}});
      case 2:
        return feed(stale(Prepared{facts_.taken}));
      case 3:
        return feed(stale(Looked{one_in(2), one_in(2) ? "a thread computes" : ""}));
      case 4:
        return feed(stale(Slid{Index{0}}));
      case 5:
        return feed(PeerCheckpoint{note()});
      case 6:
        return feed(CheckpointRequested{});
      case 7:
        return feed(CheckpointSuggested{});
      case 8:
        return feed(Lacked{ReplicaId{2}, facts_.taken});
      case 9:
        return feed(ServerRan{facts_.now_ns / 2});
      case 10:
        return feed(ServerBehind{static_cast<std::int64_t>(below(200)) * kMs});
      case 11:
        return feed(PeerCommitted{ReplicaId{0}, {below(3), below(2), below(100)}});
      case 12:
        return feed(CheckpointRequested{ReplicaId{1}});
      case 13:
        return feed(PeerWish{ReplicaId{2}, {value(facts_.committed)}});
      case 14:
        return come_back();
      default:
        return feed(Tick{});
    }
  }

  // Nothing fails and the server becomes quiescent: everything in progress ends.
  void calm() {
    fails_ = false;
    facts_.role = consensus::Role::kFollower;
    facts_.leads = facts_.started = facts_.serves = facts_.restarts = facts_.stopping = false;
    for (int i = 0; i < 50; ++i) {
      facts_.now_ns += 100 * kMs;
      come_back();
      feed(Tick{});
    }
  }

  const Recovery& machine() const { return machine_; }
  int held() const { return held_; }
  bool packs() const { return packing_; }
  const std::vector<std::string>& restarts() const { return restarts_; }

 private:
  static Recovery::Rules rules() {
    Recovery::Rules r;
    r.requests.self = ReplicaId{1};
    r.requests.wanted = true;
    r.requests.limits.every_ns = 500 * kMs;
    r.requests.limits.ring_bytes = r.ring_bytes = 1 << 16;
    return r;
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  // An unrequested answer is legal only while no request is open (REPLICA-S3).
  Event stale(Event event) const { return machine_.holds_log() || prepares_ ? Tick{} : event; }
  Index commit() {
    facts_.log_end += 100 + below(4000);
    facts_.taken = facts_.for_server = facts_.committed = Index{value(facts_.taken) + 1};
    return facts_.taken;
  }
  CheckpointNote note() {
    CheckpointNote n;
    n.state = 1 + below(4);
    n.index = below(value(facts_.taken) + 1);
    n.end = below(facts_.log_end + 1);
    return n;
  }
  void change_facts() {
    facts_.now_ns += static_cast<std::int64_t>(below(300)) * kMs;
    facts_.applied = Index{below(value(facts_.taken) + 1)};
    facts_.leads = one_in(3);
    facts_.role = facts_.leads ? consensus::Role::kLeader : consensus::Role::kFollower;
    facts_.started = facts_.leads && !one_in(4);
    facts_.serves = facts_.started && !one_in(4);
    facts_.needs_checkpoint = !facts_.leads && one_in(8);
    facts_.restarts = one_in(8);
    facts_.view = View{256 * (1 + below(3))};
    facts_.leader = ReplicaId{static_cast<std::uint8_t>(below(3))};
    for (MemberView& m : members_) {
      m.connected = m.id == ReplicaId{1} || !one_in(3);
      m.streaming = m.connected && !one_in(4);
      m.report.reset();
      if (!one_in(4)) m.report = report();
    }
  }
  ServerReport report() {
    ServerReport r;
    r.acceptor_only = one_in(3);
    r.waits_behind = Index{below(30)};
    r.lacks = one_in(4);
    r.recovers = one_in(3);
    r.held = one_in(3);
    return r;
  }
  // Ends one of the actions in progress.
  void come_back() {
    if (prepares_ && (calm_or() || one_in(2))) {
      prepares_ = false;
      return feed(well() ? Event(Prepared{facts_.taken})
                         : Event(Dumped{"CRIU was killed", "", false}));
    }
    if (dumps_) {
      dumps_ = false;
      return feed(well() ? Dumped{"", "", true}
                         : Dumped{"io_uring", one_in(2) ? "io_uring" : "", false});
    }
    if (packing_) {
      packing_ = false;
      return feed(well() ? Packed{facts_.taken, facts_.log_end, true, 0, ""}
                         : Packed{facts_.taken, 0, true, 0, "the disk is full"});
    }
  }
  bool calm_or() const { return !fails_; }
  bool well() { return !fails_ || !one_in(3); }

  void feed(const Event& event) {
    events_.push_back(event);
    if (carries_out_) return;  // REPLICA-S1
    carries_out_ = true;
    while (!events_.empty()) {
      facts_.members = members_;
      facts_.packs = packing_ || prepares_ || dumps_;
      machine_.step(events_.front(), facts_);
      events_.pop_front();
      for (const Action& action : machine_.take_actions()) {
        std::visit([this](const auto& a) { on(a); }, action);
      }
      CHECK(held_ == (machine_.holds_log() ? 1 : 0));  // TAKE-1
    }
    carries_out_ = false;
  }
  template <typename Other>
  void on(const Other&) {}
  void on(const ProposeCheckpoint&) {
    feed(well() ? Proposed{commit(), ""} : Proposed{Index{}, "the log is full"});
  }
  void on(const FindCheckpoints& a) {
    Found found;
    found.purpose = a.purpose;
    if (one_in(2)) {
      found.checkpoints.push_back({{{View{1}, Index{below(value(facts_.taken) + 5)}}, 0}});
      found.checkpoints.back().distrusted = one_in(4);
    }
    feed(found);
  }
  void on(const Prepare&) {
    CHECK_FALSE((prepares_ || packing_));
    CHECK_FALSE(machine_.acceptor_only());
    CHECK_FALSE(facts_.restarts);  // RECOVERY-1
    if (well()) {
      prepares_ = true;
    } else {
      feed(Dumped{"no server runs", "", false});  // REPLICA-S5
    }
  }
  void on(const Look&) {
    if (held_ == 0) held_ = 1;  // the first one follows Prepared
    feed(Looked{calm_or() || one_in(2), calm_or() || one_in(2) ? "" : "a thread computes"});
  }
  void on(const Slide&) { feed(Slid{one_in(2) ? commit() : Index{0}}); }
  void on(const Dump&) {
    CHECK_FALSE((facts_.leads && others_take()));  // ASK-1
    dumps_ = true;
  }
  bool others_take() const {
    return std::any_of(members_.begin(), members_.end(), [](const MemberView& m) {
      return m.id != ReplicaId{1} && m.connected && !m.only_votes() && !m.needs_checkpoint;
    });
  }
  void on(const ReleaseLog&) { held_ = 0; }
  void on(const Pack&) { packing_ = true; }
  void on(const Discard&) { prepares_ = dumps_ = packing_ = false; }
  void on(const Restart& a) { restarts_.push_back(a.why); }

  std::mt19937_64 random_;
  Recovery machine_;
  std::vector<MemberView> members_;
  Facts facts_;
  std::deque<Event> events_;
  bool carries_out_ = false, fails_ = true;
  int held_ = 0;
  bool prepares_ = false, dumps_ = false, packing_ = false;
  std::vector<std::string> restarts_;
};

std::uint64_t seed() {
  const char* given = std::getenv("CRANE_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

}  // namespace

TEST_CASE("recovery: every event is legal in every state, and everything that begins ends",
          "[replica][REPLICA-S1][REPLICA-S2][REPLICA-S3][REPLICA-S4][REPLICA-S5][RECOVERY-1]") {
  const std::uint64_t first = seed();
  for (std::uint64_t n = 0; n < 300; ++n) {
    INFO("CRANE_SEED=" << first + n);
    Shell shell(first + n);
    shell.open(n % 4 == 0);
    for (int i = 0; i < 300; ++i) shell.random_event();
    shell.calm();
    REQUIRE(shell.machine().idle());
    REQUIRE(shell.held() == 0);
    REQUIRE_FALSE(shell.packs());
    CHECK((n % 4 == 0) == shell.machine().acceptor_only());
  }
}

namespace {

// A replica whose host lost its memory, and its log with it: it begins at the log's beginning.
struct Returning {
  Returning() {
    facts.now_ns = 1'000 * kMs;
    facts.role = consensus::Role::kLearner;
    facts.view = View{256};
    facts.leader = ReplicaId{0};
    Opened opened;
    opened.restores = true;
    step(opened);
  }
  ActionList step(const Event& event) {
    machine.step(event, facts);
    return machine.take_actions();
  }
  // Whether it reports within that time that it has caught up.
  bool catches_up_within(std::int64_t ns) {
    for (const std::int64_t until = facts.now_ns + ns; facts.now_ns < until;) {
      facts.now_ns += 10 * kMs;
      for (const Action& action : step(ServerBehind{0})) {
        const auto* sent_note = std::get_if<SendNote>(&action);
        if (sent_note != nullptr) question = std::get<CommittedMessage>(sent_note->message);
        if (std::holds_alternative<ReportCaughtUp>(action)) return true;
      }
    }
    return false;
  }
  void answer(std::uint64_t committed) {
    question.answers = 1;
    question.committed = committed;
    step(PeerCommitted{ReplicaId{0}, question});
  }

  static Recovery::Rules rules() {
    Recovery::Rules r;
    r.requests.self = ReplicaId{1};
    return r;
  }
  Facts facts;
  Recovery machine{rules()};
  CommittedMessage question;
};

}  // namespace

TEST_CASE("recovery: a replica that lost its memory asks its leader how much it missed",
          "[replica][CATCHUP-1]") {
  Returning r;
  r.step(ServerRuns{});
  CHECK_FALSE(r.catches_up_within(5'000 * kMs));
  REQUIRE(r.question.life != 0);
  r.answer(100);
  CHECK_FALSE(r.catches_up_within(1'000 * kMs));
  r.facts.taken = r.facts.for_server = r.facts.committed = r.facts.applied = Index{100};
  CHECK(r.catches_up_within(100 * kMs));
}

TEST_CASE("recovery: a replica whose server does not run yet has not caught up",
          "[replica][CATCHUP-1]") {
  Returning r;
  CHECK_FALSE(r.catches_up_within(100 * kMs));
  r.answer(0);
  CHECK_FALSE(r.catches_up_within(1'000 * kMs));
  r.step(ServerRuns{});
  CHECK(r.catches_up_within(100 * kMs));
}

namespace {

// Replica 1 of three, which follows replica 0.
struct Follower : Returning {
  Follower() {
    facts.role = consensus::Role::kFollower;
    facts.committed = Index{41};
  }
  // The answer to an operator who requests a checkpoint; `wish`: what the leader is sent.
  Answer ask(std::optional<ReplicaId> of, std::optional<CheckpointWish>& wish) {
    std::optional<Answer> answer;
    for (const Action& action : step(CheckpointRequested{of})) {
      if (const auto* sent_note = std::get_if<SendNote>(&action)) {
        CHECK(sent_note->to == ReplicaId{0});
        wish = std::get<CheckpointWish>(sent_note->message);
      }
      if (const auto* one = std::get_if<Answer>(&action)) answer = *one;
    }
    REQUIRE(answer);
    return *answer;
  }
};

}  // namespace

TEST_CASE("recovery: a follower passes its operator's request for a checkpoint on", "[replica]") {
  Follower f;
  std::optional<CheckpointWish> wish;
  const Answer answer = f.ask(ReplicaId{1}, wish);
  CHECK(answer.refused == nullptr);
  CHECK(answer.taker == ReplicaId{1});
  CHECK(answer.at == Index{42});
  REQUIRE(wish);
  CHECK(wish->behind == 41);

  for (const auto of : {std::optional<ReplicaId>{}, std::optional<ReplicaId>{ReplicaId{2}}}) {
    wish.reset();
    CHECK(std::string(f.ask(of, wish).refused) == "not_leader");
    CHECK_FALSE(wish);
  }
  SECTION("without a leader") { f.facts.leader = ReplicaId{kReplicasMax}; }
  SECTION("before the first view") { f.facts.view = View{0}; }
  SECTION("as a learner") { f.facts.role = consensus::Role::kLearner; }
  CHECK(std::string(f.ask(ReplicaId{1}, wish).refused) == "not_leader");
  CHECK_FALSE(wish);
}

namespace {

// The follower after it has passed a request on to replica 0, behind entry 41.
struct Wishing : Follower {
  Wishing() {
    std::optional<CheckpointWish> wish;
    REQUIRE(ask(ReplicaId{1}, wish).refused == nullptr);
  }
  void elect(std::uint8_t leader, std::uint64_t view) {
    facts.leader = ReplicaId{leader};
    facts.view = View{view};
    facts.leads = leader == 1;
    facts.role = facts.leads ? consensus::Role::kLeader : consensus::Role::kFollower;
  }
  // The wishes that it sends in a second, with their receivers.
  std::vector<std::pair<ReplicaId, std::uint64_t>> sent_in_a_second() {
    return sent_in(1000 * kMs);
  }
  std::vector<std::pair<ReplicaId, std::uint64_t>> sent_in(std::int64_t time_ns) {
    std::vector<std::pair<ReplicaId, std::uint64_t>> sent;
    for (const std::int64_t end_ns = facts.now_ns + time_ns; facts.now_ns < end_ns;) {
      facts.now_ns += 10 * kMs;
      for (const Action& action : step(Tick{})) {
        const auto* note = std::get_if<SendNote>(&action);
        const auto* wish = note != nullptr ? std::get_if<CheckpointWish>(&note->message) : nullptr;
        if (wish != nullptr) sent.emplace_back(note->to, wish->behind);
      }
    }
    return sent;
  }
};

using Sent = std::vector<std::pair<ReplicaId, std::uint64_t>>;

}  // namespace

TEST_CASE("recovery: each leader gets an operator's request until it answers",
          "[replica][WISH-1]") {
  Wishing w;
  const auto repeated = [](std::uint8_t leader) {
    return Sent{{ReplicaId{leader}, 41}, {ReplicaId{leader}, 41}};
  };
  CHECK(w.sent_in_a_second() == repeated(0));
  w.facts.committed = Index{50};
  w.elect(kReplicasMax, 257);  // no replica leads yet
  CHECK(w.sent_in_a_second().empty());
  CHECK(w.machine.due_ns() > w.facts.now_ns);
  w.elect(2, 257);
  CHECK(w.sent_in_a_second() == repeated(2));
  w.elect(0, 512);  // at once
  CHECK(w.sent_in(10 * kMs) == Sent{{ReplicaId{0}, 41}});
  CHECK(w.machine.due_ns() == w.facts.now_ns + PassedOnWish::kRepeatNs);
}

TEST_CASE("recovery: an earlier request for a checkpoint does not answer the operator",
          "[replica][WISH-1]") {
  Wishing w;
  w.step(CheckpointCommitted{Index{41}, ReplicaId{1}});  // committed before, handled now
  w.elect(2, 257);
  CHECK_FALSE(w.sent_in_a_second().empty());
}

TEST_CASE("recovery: a request that was granted, or that waits no more, is not repeated",
          "[replica][WISH-1]") {
  Wishing w;
  SECTION("granted") { w.step(CheckpointCommitted{Index{45}, ReplicaId{1}}); }
  SECTION("too old") { w.facts.now_ns += PassedOnWish::kWishNs; }
  w.elect(2, 257);
  CHECK(w.sent_in_a_second().empty());
}

TEST_CASE("recovery: a new leader refuses the request that it had passed on", "[replica][WISH-1]") {
  Wishing w;
  CHECK(w.machine.checkpoint().gave_up == Index{0});
  w.elect(1, 257);
  CHECK(w.sent_in_a_second().empty());
  CHECK(w.machine.checkpoint().gave_up == Index{42});
  CHECK(w.machine.checkpoint().failed == 1);
  CHECK_FALSE(w.machine.checkpoint().busy);
}

TEST_CASE("recovery: the operator gets a leader's reason to refuse the request",
          "[replica][WISH-1]") {
  Wishing w;
  WishRefusal refusal{40, "no other replica follows"};
  w.step(PeerWishRefused{ReplicaId{0}, refusal});  // of an earlier request
  CHECK(w.machine.checkpoint().gave_up == Index{0});
  refusal.behind = 41;
  w.step(PeerWishRefused{ReplicaId{0}, refusal});
  CHECK(w.machine.checkpoint().gave_up == Index{42});
  CHECK(w.machine.checkpoint().why == "the leader, replica 0, refuses: no other replica follows");
  w.elect(2, 257);
  CHECK(w.sent_in_a_second().empty());
}
