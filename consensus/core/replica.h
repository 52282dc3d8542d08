// SPDX-License-Identifier: Apache-2.0
#pragma once
// One replica of the replicated log: leader, candidate, follower or learner, as one pure machine.
//
// The idea (Mu 4, consensus/DESIGN.md): the leader appends to its own ring and copies the entry,
// one-sided, to the same position of every follower's ring; a majority of completions commits it.
// Permission makes that safe: a follower lets one replica at a time write, the owner of the highest
// view it has promised, and it fences the old writer before it reports where its log ends.  A new
// leader adopts the best log of a majority, writes each follower from its first differing entry on
// with the original stamps, and commits only by counting entries of its own view.
//
// The files: permission.cc (promise, fence, grant), election.cc (pull-score, pre-vote, back-off),
// takeover.cc (adopt, match), stream.cc (write, count, commit), commit.cc (the durable log of disk
// mode: commit.h names its invariants), catch_up.cc (entries from peers' stores), truncation.cc
// (entries that stores may drop), members.cc (CONFIG, join, leave), replica.cc (the rest).
//
// INVARIANT CORE-P1  the promised view never falls; a grant is for the promised view only.
// INVARIANT CORE-P2  the old writer is fenced and the log re-scanned between promise and grant.
// INVARIANT CORE-P3  at most one peer may write the log memory; none while this replica leads.
// INVARIANT CORE-C1  delivered <= committed <= end of log, in position and index.
// INVARIANT CORE-C2  a leader counts only completions of streaming peers, i.e. of logs equal to its
//               own up to that entry, and only entries of its own view.
// INVARIANT CORE-C3  a commit index from elsewhere counts only from a valid entry or cell of the
//               promised view, and only once its log holds an entry of that view.
// INVARIANT CORE-C4  no byte that a follower has not copied out is overwritten.
// INVARIANT CORE-C5  a log that begins at a checkpoint begins after a committed entry, and the
//               replica grants nothing to a leader of an older view than the one in which that was
//               known.
// INVARIANT CORE-C6  entries that a server missed since its checkpoint come from its ring only
//               if all of them, up to the low-water mark, are whole there after the fence.
// INVARIANT CORE-C7  no entry after the place that Keep named last, or from which this replica
//               began, is overwritten in its ring, by this replica as a leader or by its leader,
//               unless it was released before.
// INVARIANT CORE-C8  the consumed position that a replica publishes never falls once the replica
//               has entered its log: a leader uses the highest one that it got since the grant.
// INVARIANT CORE-D5  entries that leave a store are covered: a committed TRUNCATION entry names
//               their index or a later one, and a majority of the voters in force there held
//               checkpoints at it or later.
// INVARIANT CORE-M3  the members in force are those of the newest CONFIG in the log, else of
//               the newest committed one, else the group's first; the list follows truncation.
// INVARIANT CORE-M4  at most one CONFIG of a leader's log is uncommitted, and none was appended
//               before the START of its view was committed.
// INVARIANT CORE-M5  a leader has grants of a majority of the CONFIG in the log it adopted, each of
//               the very incarnation that this CONFIG names.
// INVARIANT CORE-M6  only voters count, campaign and lead; learners are written to like followers.
// INVARIANT CORE-M7  an analysis replica never votes: no CONFIG gives its member another role
//               (membership.h), its process takes no other member's place, and does not vote
//               whatever list it holds.
//
// Threads: one.  See step.h for the contracts with the driver.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "consensus/core/commit.h"
#include "consensus/core/log.h"
#include "consensus/core/pull_score.h"
#include "consensus/core/replica_state.h"
#include "consensus/core/role_state.h"
#include "consensus/core/step.h"
#include "consensus/core/transitions.h"
#include "consensus/core/tuning.h"
#include "dmt/base/assert.h"
#include "dmt/base/result.h"

namespace crane::consensus::core {

class Replica {
 public:
  // `log_memory` outlives the replica; it has log_memory_bytes(config.ring_bytes) bytes, zero when
  // new.
  Replica(const Config& config, std::span<std::byte> log_memory);

  // One event.  The first is Start.
  void step(const Event& event, Now now);

  // Appends an input.  kNotLeader; kBusy: too much is uncommitted or unconsumed, try again after
  // the next event; kBadArgument: too long or a reserved type.
  Result<Index> propose(const Proposal& proposal, Now now);

  // Returns the actions since the last call by swapping buffers; false if there are none.
  bool take_actions(ActionList& out);

  // The next committed entry, in order, each once per incarnation (after a restart on surviving
  // memory some are delivered again).  Earlier entries count as consumed.
  std::optional<Entry> deliver();

  // When the next Tick is due, on the clock of Now.
  std::uint64_t deadline_ns() const noexcept { return deadline_ns_; }

  Role role() const noexcept { return role_; }
  View promised_view() const noexcept { return promised_; }
  // The view this replica is candidate or leader in, or 0.
  View leading_view() const noexcept;
  ReplicaId leader() const noexcept { return role_ == Role::kLeader ? config_.self : leader_; }
  Viewstamp last() const noexcept { return end_.last; }
  std::uint64_t end_pos() const noexcept { return end_.pos; }
  Index committed() const noexcept { return commit_.last.index; }
  Viewstamp last_committed() const noexcept { return commit_.last; }
  Index delivered() const noexcept { return deliver_.last.index; }
  std::uint64_t backlog() const noexcept {
    return value(end_.last.index) - value(commit_.last.index);
  }
  PeerState peer_state(ReplicaId peer) const { return peers_[value(peer)].state; }
  // The last entry that `peer` certainly holds; leader only.
  Index peer_last(ReplicaId peer) const { return peers_[value(peer)].acked_index; }
  // The last entry that it reported as stored in this view; leader only, disk mode.
  Index peer_durable(ReplicaId peer) const { return peers_[value(peer)].durable; }
  // The last entry of `peer`'s application when its status cell was last read.
  Index peer_applied(ReplicaId peer) const { return peers_[value(peer)].applied; }
  // Disk mode: this replica's store holds everything up to this entry.
  Viewstamp durable() const noexcept { return durable_.store.stored().last; }
  // The newest checkpoint that this replica holds, and the last entry that stores may drop.
  Index held() const noexcept { return truncation_.held; }
  Index covered() const noexcept { return truncation_.covered; }
  // --- membership (members.cc) ---
  // The members in force (CORE-M3), and the stamp of the CONFIG that names them.
  const Members& members() const noexcept { return membership_.configs.back().members; }
  Viewstamp config_at() const noexcept { return membership_.configs.back().at; }
  // It leads and will continue to: no transfer (which stops proposals) has begun, and it is not
  // being removed.
  bool keeps_leading() const noexcept {
    return role_ == Role::kLeader && membership_.transfer_to == kNoReplica && votes();
  }
  // The newest CONFIG is not known to be committed.
  bool changing() const noexcept { return membership_.configs.size() > 1; }
  // The newest one that is known to be committed.
  const ConfigAt& committed_config() const noexcept { return membership_.configs.front(); }
  // kNotLeader; kBusy: a change or transfer is under way, the learner lags, or too few of the
  // remaining voters are in touch: try again; kBadArgument: the change is invalid.
  Result<Index> change_members(const MemberChange& change, Now now);
  // Hands leadership to a voter that follows: proposals are refused (kBusy) until that voter has
  // everything and takes over.  Given up after a time-out.
  Outcome transfer(ReplicaId to, Now now);
  // It lacks entries that left the leader's ring, and no peer's store has them (memory mode: at
  // once).
  bool needs_checkpoint() const noexcept { return membership_.needs_checkpoint; }
  // It failed at its start: the ring does not hold all that the server missed since its checkpoint.
  bool checkpoint_too_old() const noexcept { return entrance_.checkpoint_too_old; }
  // It takes missing entries from peers' stores.
  bool fetching() const noexcept { return fetch_.state != FetchState::kNone; }
  // As needs_checkpoint(), of a peer that is kBehind; leader only.
  bool peer_needs_checkpoint(ReplicaId peer) const {
    const Peer& p = peers_[value(peer)];
    return p.state == PeerState::kBehind && p.cannot;
  }
  const ElectionStatus& last_election() const noexcept { return seeking_.last; }
  const PullScore& score() const noexcept { return score_; }
  std::uint64_t heartbeat_period_ns() const noexcept { return heartbeat_.period_ns; }
  const LogRing& ring() const noexcept { return ring_; }
  const Config& config() const noexcept { return config_; }

 private:
  enum class OpKind : std::uint8_t {
    kWriteEntries = 1,
    kWritePart,  // the first piece of a write that straddles the end of the ring
    kWriteCommit,
    kReadMatch,
    kReadAdopt,
    kReadHeartbeat,
    kReadStatus,
    kReadDurable,
    kReadFetch,
  };
  struct InFlight {
    std::uint32_t sequence = 0;
    std::uint64_t pos = 0;
    Index index{};
  };
  struct Peer {
    PeerState state = PeerState::kIdle;
    bool up = true;
    bool connected = false;  // something was written under `key`
    Key key{};
    std::uint32_t epoch = 0;  // completions of older epochs are stale
    std::uint64_t retry_at_ns = 0;
    unsigned retry_power = 0;
    Message grant;  // its answer for this view
    bool granted = false;
    Cursor sent;                  // the leader wrote its log up to here
    std::uint64_t acked_pos = 0;  // it certainly holds everything up to here
    Index acked_index{};
    std::uint64_t progress_pos = 0;  // last position up to which kProgress confirmed its log
    std::uint64_t consumed_pos = 0;
    Index applied{};
    bool throttled = false;  // waits until the follower has copied out
    bool status_outstanding = false;
    bool commit_outstanding = false;
    Index sent_commit{};  // highest commit index sent to it
    Index durable{};      // disk mode: durable index that it reported in this view
    std::uint64_t durable_read_ns = 0;
    std::uint64_t written_ns = 0;  // when a write to it last completed, or the first one began
    Index held{};                  // newest checkpoint that it reported, under this incarnation
    std::uint32_t held_incarnation = kAnyIncarnation;
    std::array<InFlight, kWindowMax> in_flight{};
    std::uint32_t first = 0;  // ring of in_flight
    std::uint32_t count = 0;
    bool cannot = false;                   // behind, and no store has what it needs
    std::uint32_t asks = kAnyIncarnation;  // the incarnation that last asked to join,
    bool asks_analysis = false;            // and whether it is an analysis replica
    Cursor match;                          // the follower's log equals ours up to here
    std::uint64_t have = 0;
    std::array<std::byte, kMatchBytes> match_bytes;
  };
  // INVARIANT CORE-B1  the entries in the fetch region are committed and were read from this
  //               replica's store.
  // INVARIANT CORE-B2  no other replica may write the ring of one that fetches.
  // INVARIANT CORE-B3  nothing that a view above the promise may have committed is taken into the
  //               log: a leader granted afterwards would not have it.
  enum class FetchState : std::uint8_t {
    kNone,     // not behind, or no replica has reported that it is
    kWanting,  // to request more, as soon as the ring has room
    kAsking,   // a server reads its store
    kReading,  // its region is being read
    kReady,    // reported to the leader
  };
  struct Fetch {
    FetchState state = FetchState::kNone;
    bool led = false;            // the leader reported that it is behind
    std::uint8_t turn = 0;       // picks the server (server())
    std::uint8_t refusals = 0;   // since a server had entries
    std::uint64_t sequence = 0;  // of the request
    std::uint64_t retry_at_ns = 0;
    std::uint64_t leader_first = 0;  // the oldest position in the leader's ring
    Cursor served;                   // how far the server can serve, as last reported
    std::uint64_t have = 0;          // bytes in read_bytes_, from the commit cursor on
    Token read{};
  };
  struct Serve {
    bool reading = false;
    ReplicaId to = kNoReplica;
    std::uint64_t until_ns = 0;  // the region is kept for `to` until then
    std::uint64_t asked = 0;     // sequence of its request
    std::uint64_t skip = 0;
    std::uint64_t sequence = 0;
    Cursor from;
    Cursor upto;
  };

  // replica.cc
  void on(const Start& e);
  void on(const Tick& e);
  void on(const LogArrived& e);
  void on(const Flush& e);
  void on(const Completion& e);
  void on(const MessageArrived& e);
  void on(const PeerDown& e);
  void on(const PeerUp& e);
  void on(const Abdicate& e);
  void on(const ServerHealthy& e);
  void on(const ServerLagging& e);
  void enter();
  bool begin_delivery_at(const Checkpoint& checkpoint);
  void begin_log_at(const Checkpoint& checkpoint);
  void scan();
  void learn_commit(Index index);
  void publish_promise();
  void publish_status();
  void publish_if_moved();
  void note_traffic(std::uint64_t entries);
  bool active() const noexcept { return now_.now_ns < traffic_.active_until_ns; }
  void set_role(Role role, ReplicaId leader);
  void report_role(ReplicaId leader);
  void fail(const char* why);
  void send(ReplicaId to, Message message);
  Message message(MessageType type) const;
  Token token(OpKind kind, ReplicaId peer);
  void plan_deadline();
  // Every state machine moves here: by a declared move, or it keeps its state.
  template <typename State>
  void move(State& state, State to) {
    if (state == to) return;
    CRANE_ASSERT(may_follow(state, to));
    if (config_.test_only_moves != nullptr) config_.test_only_moves->count(state, to);
    state = to;
  }
  template <typename A>
  void emit(const A& action) {
    actions_.emplace_back(action);
  }

  // commit.cc
  void on(const PromiseStored& e);
  void on(const Stored& e);
  void on(const StoreFailed& e);
  bool disk() const noexcept { return config_.durability == Durability::kDisk; }
  Cursor storable() const;
  Cursor consumed() const;
  void pump_store();
  void report_durable();
  void on_durable(ReplicaId id, View reported_in, Viewstamp last);
  void read_durable(ReplicaId id);
  std::uint64_t durable_read_due(const Peer& p) const;
  void on_read_durable(ReplicaId id, const Completion& e);
  void count_durable();
  bool disks_are_slow() const;
  std::uint64_t probe_due(const Peer& p) const;
  void store_promise();
  bool promise_kept() const;
  bool stores_promise() const;
  void unrepair();

  // catch_up.cc
  void on(const Fetched& e);
  void on_behind(const Message& m);
  void send_behind(ReplicaId id);
  void on_ready(const Message& m);
  void on_fetch(const Message& m);
  void answer_fetch(ReplicaId to, std::uint64_t size);
  void on_fetched(const Message& m);
  void on_read_fetch(const Completion& e);
  void pump_fetch();
  bool take_fetched();
  void ask_for_entries();
  void want_entries(std::uint64_t after_ns);
  ReplicaId server() const;
  void put_fetched(const Cursor& at, const EntryHeader& header, std::span<const std::byte> entry);
  bool fetched_enough() const;
  void stop_fetch() { fetch_.state = FetchState::kNone; }

  // truncation.cc
  void on(const Checkpointed& e);
  void on(const Keep& e);
  void on_holds(const Message& m);
  void note_held(const Message& m);
  void report_held();
  bool must_report_held() const;
  // Makes a leader count again which entries are covered.
  void recount_held() {
    if (reign_.entered()) reign_->count_held = true;
  }
  void pump_truncation();
  Index held_by_majority() const;
  void on_truncation_point(std::span<const std::byte> payload);
  void drop_stored();

  // permission.cc
  void on(const Revoked& e);
  void on(const Permitted& e);
  void on_request(const Message& m);
  void promise(View view);
  void settle_grant();
  void answer_grant(Key key);
  void refuse(ReplicaId to, View view);

  // election.cc
  bool leader_alive() const;
  void follow(ReplicaId leader);
  void tick_follower();
  void on_heartbeat(const Completion& e);
  void suspect();
  void plan_campaign(bool lost_before);
  std::uint64_t race_ns() const noexcept { return config_.slot_ns + durable_.promise_took_ns; }
  std::uint64_t ask_timeout_ns() const;
  void start_prevote(bool transfer);
  void on_prevote(const Message& m);
  void on_prevote_yes(const Message& m);
  ServerLagging lag_in_election() const;
  Index ran_in_election() const;
  static bool is_to_yield(const Message& candidate);
  bool serves_sooner_than(const Message& candidate) const;
  bool yielded_to_further_one(const Message& candidate) const;
  void on_yield(const Message& m);
  void on_refuse(const Message& m);
  void believe_leader();
  bool lost_majority() const;
  void on_transfer(const Message& m);
  void campaign(View view);
  void set_phase(Phase phase);
  void tick_candidate();
  void step_down();
  void note_view(View view);

  // takeover.cc
  void ask_for_grants();
  void on_grant(const Message& m);
  void choose_log();
  void conclude_adoption();
  void read_adopt();
  void on_read_adopt(const Completion& e);
  bool adopt_entries();
  void start_leading();
  void restamp_adopted();
  void begin_match(ReplicaId id);
  bool intact_from(Cursor at);
  bool match_locally(Peer& p);
  void read_match(ReplicaId id);
  void on_read_match(ReplicaId id, const Completion& e);
  bool compare_match(Peer& p);
  void start_stream(ReplicaId id, Cursor from);

  // stream.cc
  void tick_leader();
  void append(std::uint8_t type, std::uint32_t grant, std::uint64_t stamp_ns,
              std::span<const std::byte> payload);
  bool room_for(std::uint64_t bytes, std::uint64_t reserve);
  void pump(ReplicaId id);
  std::uint64_t stream_limit(const Peer& p) const;
  Cursor range_end(const Peer& p, std::uint64_t limit) const;
  void write_range(ReplicaId id, const Cursor& to);
  void on_written(ReplicaId id, std::uint32_t sequence, bool ok);
  void count_commit();
  void advance_commit(Index index);
  void flush_commit(ReplicaId id);
  void write_commit(ReplicaId id);
  void send_progress(ReplicaId id);
  void resend_progress(ReplicaId id);
  void read_status(ReplicaId id);
  void on_status(ReplicaId id, const Completion& e);
  void lose_peer(ReplicaId id);
  void set_state(Peer& p, PeerState state);

  // members.cc
  void note_config(const EntryHeader& header, std::span<const std::byte> payload);
  void forget_configs(Index after);
  void settle_configs();
  void members_changed();
  bool is(ReplicaId id, std::uint32_t incarnation) const;
  bool admitted() const { return is(self(), config_.incarnation); }
  bool votes() const { return admitted() && members().voter(self()) && !config_.analysis; }
  bool granted_quorum() const;
  bool alone() const { return votes() && members().quorum() == 1; }
  bool caught_up(const Peer& p) const;
  bool screen(const Message& m);
  void ask_to_join();
  bool fits(ReplicaId id, const Message& m) const;
  bool learns(ReplicaId id) const {
    const MemberRole role = members().role(id);
    return role == MemberRole::kLearner || role == MemberRole::kAnalysis;
  }
  void on_join(const Message& m);
  void on_not_member(const Message& m);
  void propose_config(const Members& next);
  bool majority_follows_closely(const Members& next) const;
  bool may_succeed(ReplicaId id) const;
  ReplicaId successor() const;
  void begin_transfer(ReplicaId to);
  void finish_transfer();
  void leave();
  void tick_members();
  bool must_send_join(ReplicaId id) const;
  bool must_send_not_member(ReplicaId id) const;
  bool following() const noexcept { return role_ == Role::kFollower || role_ == Role::kLearner; }
  bool mutant(Mutant m) const noexcept { return config_.test_only_mutant == m; }
  ReplicaId self() const noexcept { return config_.self; }

  void note_lost_leader(ElectionCause cause);
  void note_elected();
  void note_led();

  // Constant after construction.
  const Config config_;
  LogRing ring_;

  // The event under way.
  Now now_;
  ActionList actions_;

  // The log.
  Cursor end_;
  Cursor commit_;
  Cursor deliver_;
  Cursor published_;            // consumed position in the published cells,
  Index published_applied_{};   // and the delivered index there
  std::optional<Cursor> keep_;  // the log after it is not consumed (CORE-C7)
  // Highest position the ring ever held; the ring holds at most a ring's length before it.
  std::uint64_t high_pos_ = 0;
  bool repaired_ = false;    // the log holds an entry of the promised view
  Index received_commit_{};  // highest commit index of the promised view
  Entrance entrance_;
  Traffic traffic_;

  // Stores.
  Durable durable_;
  Fetch fetch_;  // from a peer's store
  Serve serve_;  // from this replica's store, for a peer
  Truncation truncation_;
  std::vector<std::byte> read_bytes_;  // to adopt or fetch

  Membership membership_;

  // Promise and permission.
  View promised_{};
  View view_max_{};  // highest view heard of
  Permission permission_;

  // Roles.
  Role role_ = Role::kStarting;
  Phase phase_ = Phase::kNone;
  bool server_healthy_ = true;
  ServerLagging server_lag_;  // this replica's server
  ReplicaId leader_ = kNoReplica;
  ReplicaId owner_leader_ = kNoReplica;  // the leader as last reported to the owner
  PullScore score_;
  Heartbeat heartbeat_;
  Seeking seeking_;
  RoleState<Candidacy> candidacy_;
  RoleState<Reign> reign_;
  std::vector<Peer> peers_;

  std::uint32_t sequence_ = 0;
  std::uint64_t ticked_ns_ = 0;  // the last Tick
  std::uint64_t deadline_ns_ = 0;
};

}  // namespace crane::consensus::core
