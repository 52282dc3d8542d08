// SPDX-License-Identifier: Apache-2.0
#include "consensus/driver/driver.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>
#include <variant>

#include "consensus/driver/facts.h"
#include "dmt/base/clock.h"
#include "dmt/base/fault_point.h"
#include "dmt/base/log.h"

namespace crane::consensus {
namespace {

// An application's message to a peer goes as a request, next to the core's messages, which begin
// with a small number.
constexpr std::byte kOutOfBandMark{0xa0};
constexpr std::ptrdiff_t kOutOfBandHead = 8;
constexpr std::size_t kOutOfBandMax = 64;  // of one poll(); the rest is lost
bool is_out_of_band(std::span<const std::byte> request) noexcept {
  return request.size() >= kOutOfBandHead && request[0] == kOutOfBandMark;
}
static_assert(kOutOfBandBytesMax + kOutOfBandHead == kRequestBytesMax);
static_assert(core::kMessageBytes <= kRequestBytesMax);
static_assert(sizeof(CellValue) == sizeof(core::Cell), "a cell's bytes are its words");

// Pages of the ring are made present at the end of an iteration, in steps, this far ahead of
// the log's end.
constexpr std::uint64_t kPopulateStep = 32U << 10;
constexpr std::uint64_t kPopulateAhead = 256U << 10;
constexpr int kPopulateStepsMax = 16;

std::uint64_t monotonic_ns() noexcept { return static_cast<std::uint64_t>(crane::monotonic_ns()); }

// As of the last timer interrupt: at most a few milliseconds late, and no device is read.
std::uint64_t recent_ns() noexcept {
  return static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC_COARSE));
}

}  // namespace

Driver::Driver(Options options, const core::Config& config, std::unique_ptr<Fabric> fabric,
               const core::Start& start, std::unique_ptr<StoreSide> store, int event_fd)
    : options_(std::move(options)),
      fabric_(std::move(fabric)),
      store_(std::move(store)),
      event_fd_(event_fd),
      core_(config, fabric_->log_memory()),
      now_ns_(monotonic_ns()),
      random_(options_.seed | 1),
      bells_(options_.bell_spacing_ns,
             options_.fabric == FabricKind::kTcp ? options_.commit_hold_ns : 0) {
  actions_.reserve(256);
  step(start);
  populated_pos_ = core_.end_pos() / kPopulateStep * kPopulateStep;
  populate_end_ = populated_pos_ + config.ring_bytes;
  populate_ahead();
  take_own_events();  // take the fences of a restart, so that checkpoint_too_old() is final
}

Driver::~Driver() {
  if (urgency_) urgency_->stop();
  if (event_fd_ >= 0) ::close(event_fd_);
}

void Driver::be_urgent(std::shared_ptr<Urgency> urgency) noexcept {
  urgency_ = std::move(urgency);
  urgency_->watch();
}

core::Now Driver::now() noexcept {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return {now_ns_, random_};
}

void Driver::advance_clock(std::uint64_t now_ns) noexcept { now_ns_ = std::max(now_ns_, now_ns); }

// --- proposing ----------------------------------------------------------------------------------

Result<Index> Driver::propose(std::uint8_t type, std::uint64_t stamp_ns, std::uint32_t grant,
                              std::span<const std::byte> payload) {
  if (fatal_ != nullptr) return Error{Code::kNotLeader, 0, fatal_};
  if (!has_room(core::entry_bytes(payload.size()))) {
    return Error{Code::kBusy, 0, "no room in shared memory"};
  }
  advance_clock(recent_ns());  // good enough for time-outs; stamp_ns is the caller's
  const Index committed = core_.committed();
  const auto index = core_.propose({type, grant, stamp_ns, payload}, now());
  carry_out();
  if (index.ok()) sent_commit_ = committed;
  return index;
}

Result<Index> Driver::change_members(const MemberChange& change) {
  if (fatal_ != nullptr) return Error{Code::kNotLeader, 0, fatal_};
  advance_clock(monotonic_ns());
  if (!has_room(core::kMembersBytesMax)) {
    return Error{Code::kBusy, 0, "no room in shared memory"};
  }
  using Kind = core::MemberChange::Kind;
  const Kind kind = change.kind == MemberChange::Kind::kAdd           ? Kind::kAdd
                    : change.kind == MemberChange::Kind::kAddAnalysis ? Kind::kAddAnalysis
                    : change.kind == MemberChange::Kind::kPromote     ? Kind::kPromote
                                                                      : Kind::kRemove;
  const auto index = core_.change_members({kind, change.id}, now());
  carry_out();
  return index;
}

Outcome Driver::transfer(ReplicaId to) {
  if (fatal_ != nullptr) return Error{Code::kNotLeader, 0, fatal_};
  advance_clock(monotonic_ns());
  const Outcome begun = core_.transfer(to, now());
  carry_out();
  return begun;
}

bool Driver::send_message(ReplicaId to, std::span<const std::byte> bytes) {
  CRANE_ASSERT(bytes.size() <= kOutOfBandBytesMax);
  std::array<std::byte, kRequestBytesMax> request{};
  request[0] = kOutOfBandMark;
  std::copy(bytes.begin(), bytes.end(), request.begin() + kOutOfBandHead);
  urgent_ = true;
  return fatal_ == nullptr &&
         fabric_->send_request(to, std::span(request).first(kOutOfBandHead + bytes.size()));
}

void Driver::abdicate(const char* reason, std::optional<ReplicaId> successor) {
  if (core_.role() == Role::kLeader) {
    Message() << "leadership handed over: r" << static_cast<unsigned>(value(options_.self)) << ": "
              << reason;
  }
  step(core::Abdicate{successor.value_or(core::kNoReplica)});
  pump();
}

void Driver::fit() { step(core::ServerHealthy{}); }

void Driver::lags(std::uint64_t ns, Index ran) { step(core::ServerLagging{ns, ran}); }

void Driver::keep_log(const LogPlace* from) {
  core::Keep keep;
  if (from != nullptr) keep.from = core::Cursor{from->pos, from->at};
  if (fatal_ == nullptr) step(keep);
}

void Driver::checkpointed(Index at) {
  if (fatal_ == nullptr) step(core::Checkpointed{at});
}

Result<LogCopy> Driver::copy_log(const LogCopyRequest& request) {
  if (!store_) return Error{Code::kUnsupported, 0, "the log is in memory only"};
  if (fatal_ != nullptr) return Error{Code::kGone, 0, fatal_};
  return store_->copy(request, std::min(core_.committed(), core_.durable().index));
}

// --- the loop -----------------------------------------------------------------------------------

std::uint64_t Driver::poll(std::uint64_t now_ns) {
  if (fatal_reported_) return std::numeric_limits<std::uint64_t>::max();
  if (urgency_) urgency_->turn(now_ns);
  advance_clock(now_ns);
  if (short_of_memory_) static_cast<void>(has_room(refused_bytes_));
  look_at_disk();
  // Process what arrived while the reader was away before judging that nothing arrived.
  pump();
  if (core_.deadline_ns() <= now_ns_) {
    step(core::Tick{});
    pump();
  }
  reported_deadline_ns_ = deadline();
  return reported_deadline_ns_;
}

std::uint64_t Driver::deadline() noexcept {
  bells_.look(sent_commit_, core_.committed(), now_ns_);
  const std::uint64_t bell = bells_.due_ns(leads());
  return bell > now_ns_ ? std::min(core_.deadline_ns(), bell) : core_.deadline_ns();
}

void Driver::flush_doorbells() {
  if (fatal_reported_) return;
  if (bells_.due_ns(leads()) != BellClock::kNever) {
    advance_clock(monotonic_ns());
    if (now_ns_ >= bells_.due_ns(leads())) {
      step(core::Flush{});
      bells_.rang(now_ns_);  // this bell also covers the writes of the flush
      sent_commit_ = core_.committed();
      urgent_ = true;
    }
  }
  do {
    while (take_events()) {
    }
    if (urgent_) ring_all();
    fabric_->tidy();
    populate_ahead();
  } while (!fabric_->prepare_to_sleep());
  // The caller now waits for the deadline of the last poll().  Wake it at once if a callback or an
  // earlier deadline came up since.
  if (has_callbacks() || deadline() < reported_deadline_ns_) fabric_->wake_self();
}

bool Driver::has_callbacks() const noexcept {
  if (replaying()) return store_->ready() || fatal_ != nullptr;
  return core_.committed() > core_.delivered() || !roles_.empty() || members_changed_ ||
         !out_of_band_.empty() || fatal_ != nullptr;
}

void Driver::ring_all() {
  urgent_ = false;
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    if (ReplicaId{i} != options_.self) fabric_->ring_doorbell(ReplicaId{i});
  }
}

// The ring is sparse: in its first lap each page would fault once during a proposal.
void Driver::populate_ahead() {
  const std::uint64_t end = core_.end_pos();
  const std::uint64_t ring = core_.config().ring_bytes;
  populated_pos_ = std::max(populated_pos_, end / kPopulateStep * kPopulateStep);
  for (int i = 0; i < kPopulateStepsMax; ++i) {
    if (populated_pos_ >= populate_end_ || populated_pos_ > end + kPopulateAhead) return;
    if (!back(populated_pos_, kPopulateStep)) return;
    fabric_->populate(populated_pos_ % ring, kPopulateStep);
    populated_pos_ += kPopulateStep;
  }
}

void Driver::step(const core::Event& event) {
  core_.step(event, now());
  carry_out();
}

// Carries out the core's actions, one list after the other.
void Driver::carry_out() {
  while (core_.take_actions(actions_)) {
    for (const core::Action& action : actions_) {
      std::visit([this](const auto& a) { carry_out(a); }, action);
    }
  }
}

// Steps the core with some events, at most until something is committed; makes no callback.  False
// if there were none.
bool Driver::take_events() {
  if (next_event_ < events_taken_) return take_fabric_events();
  take_own_events();
  const bool stored = take_stored();
  next_event_ = 0;
  events_taken_ = fabric_->poll(events_);
  return take_fabric_events() || stored;
}

void Driver::take_own_events() {
  while (!own_events_.empty()) {
    const auto batch = std::exchange(own_events_, {});
    for (const core::Event& e : batch) step(e);
  }
}

bool Driver::take_fabric_events() {
  const std::size_t first = next_event_;
  while (next_event_ < events_taken_) {
    on_fabric_event(events_[next_event_++]);
    if (core_.committed() > core_.delivered()) break;
  }
  return next_event_ > first;
}

bool Driver::take_stored() {
  return store_ && store_->take([this](const core::Event& e) { step(e); });
}

// Takes events and makes callbacks, which may propose, until nothing is left.  Entries that one
// event committed are handed out before the next event is processed: clients wait for them.
void Driver::pump() {
  if (pumping_) return;
  const auto report_changes = [this] {
    if (replaying() || has_callbacks()) run_callbacks();
  };
  do {
    report_changes();
  } while (take_events());
  report_changes();
}

// If `e` is a heartbeat that did not move: the observed state of the leader's process.
PeerProcess Driver::still_leader(const FabricEvent& e) noexcept {
  const ReplicaId leader = core_.leader();
  if (!e.ok || e.data.size() != sizeof(core::Cell) || leader == core::kNoReplica) {
    return PeerProcess::kUnknown;
  }
  core::Cell cell{};
  std::memcpy(cell.data(), e.data.data(), sizeof cell);
  const bool moved = cell[core::kHeartbeat] != heartbeat_seen_;
  heartbeat_seen_ = cell[core::kHeartbeat];
  if (moved || leader == options_.self) return PeerProcess::kUnknown;
  return fabric_->process_of(leader);
}

void Driver::on_fabric_event(const FabricEvent& e) {
  switch (e.kind) {
    case FabricEvent::Kind::kCompletion:
      step(core::Completion{e.token, e.ok, e.data, still_leader(e)});
      break;
    case FabricEvent::Kind::kRequest:
      if (is_out_of_band(e.data)) {
        if (out_of_band_.size() < kOutOfBandMax) {
          out_of_band_.push_back({e.peer, {e.data.begin() + kOutOfBandHead, e.data.end()}});
        }
        break;
      }
      step(core::MessageArrived{e.peer, e.data});
      break;
    case FabricEvent::Kind::kLanded:
      step(core::LogArrived{});
      break;
    case FabricEvent::Kind::kPeerUp:
      step(core::PeerUp{e.peer});
      break;
    case FabricEvent::Kind::kPeerDown:
      step(core::PeerDown{e.peer});
      break;
  }
}

// --- callbacks ----------------------------------------------------------------------------------

void Driver::run_callbacks() {
  pumping_ = true;
  deliver();
  while (!roles_.empty() && !replaying()) {  // LOG-K3
    const core::RoleChange change = roles_.front();
    roles_.erase(roles_.begin());
    if (options_.callbacks.on_role) {
      options_.callbacks.on_role(change.role, change.view, change.leader);
    }
    deliver();
  }
  if (std::exchange(members_changed_, false) && options_.callbacks.on_members) {
    options_.callbacks.on_members();
  }
  for (const OutOfBand& message : std::exchange(out_of_band_, {})) {
    if (options_.callbacks.on_message) options_.callbacks.on_message(message.from, message.bytes);
  }
  if (fatal_ != nullptr && !fatal_reported_) {
    fatal_reported_ = true;
    if (options_.callbacks.on_fatal) options_.callbacks.on_fatal(fatal_);
  }
  pumping_ = false;
}

void Driver::deliver() {
  if (replaying()) {
    store_->replay([this](const EntryView& e) { hand_out(e); });
    if (replaying()) return carry_out();
  }
  while (const auto e = core_.deliver()) {
    bells_.moved();
    carry_out();
    const std::uint64_t end_pos = e->pos + core::entry_bytes(e->payload.size());
    hand_out({e->at, e->type, e->stamp_ns, e->grant, e->payload, end_pos});
  }
  carry_out();
}

void Driver::hand_out(const EntryView& entry) {
  if (options_.callbacks.on_committed) options_.callbacks.on_committed(entry);
}

// --- actions ------------------------------------------------------------------------------------

void Driver::carry_out(const core::WriteLog& a) {
  bells_.moved();
  sent_commit_ = Index{0};  // the write may serve a catch-up; propose() knows better
  fabric_->write(a.peer, a.key, a.offset, fabric_->log_memory().subspan(a.offset, a.size), a.token);
}

void Driver::carry_out(const core::ReadLog& a) {
  if (!leads() && !back(core_.end_pos(), a.size + kBackedBehind)) {
    own_events_.emplace_back(core::Completion{a.token, false, {}, PeerProcess::kUnknown});
    return;
  }
  fabric_->read(a.peer, a.offset, a.size, a.token);
}

void Driver::carry_out(const core::ReadCell& a) { fabric_->read_cell(a.peer, a.cell, a.token); }

void Driver::carry_out(const core::CloseLog& a) { fabric_->close_log(a.peer); }

void Driver::carry_out(const core::SetCell& a) {
  CellValue v;
  std::copy(a.value.begin(), a.value.end(), v.words);
  fabric_->set_cell(a.cell, v);
}

void Driver::carry_out(const core::SendMessage& a) {
  urgent_ = true;
  // A message that cannot be sent now is lost; the core asks again (CORE-S6).
  fabric_->send_request(a.peer, std::as_bytes(std::span(&a.message, 1)));
}

void Driver::carry_out(const core::PermitWrites& a) {
  const auto key = fabric_->permit_writes(a.peer);
  if (!key) {
    Message() << "no write permission given: r" << static_cast<unsigned>(value(a.peer)) << ": "
              << key.error().what << ": errno " << key.error().detail;
  }
  own_events_.emplace_back(core::Permitted{a.peer, key.ok() ? key.value() : kNoKey, key.ok()});
}

void Driver::carry_out(const core::RevokeWrites& a) {
  fabric_->revoke_writes(a.peer);
  own_events_.emplace_back(core::Revoked{a.peer});
}

void Driver::carry_out(const core::Committed&) { bells_.moved(); }

void Driver::carry_out(const core::RoleChange& a) {
  roles_.push_back(a);
  if (a.role == Role::kRemoved) fatal_ = "this replica was removed from the group";
}

void Driver::carry_out(const core::MembersChange&) { members_changed_ = true; }

void Driver::carry_out(const core::Fatal& a) { fatal_ = a.why; }

void Driver::carry_out(const core::StorePromise& a) { store_->submit(a); }

void Driver::carry_out(const core::StoreEntries& a) { store_->submit(a, core_.ring()); }

void Driver::carry_out(const core::FetchEntries& a) { store_->submit(a); }

void Driver::carry_out(const core::DropStored& a) {
  fault_point("truncate.covered");
  store_->submit(a);
}

// --- status -------------------------------------------------------------------------------------

Index Driver::peer_applied(ReplicaId peer) const {
  return core_.role() == Role::kLeader ? core_.peer_applied(peer) : Index{};
}

std::uint64_t Driver::backlog() const {
  return core_.role() == Role::kLeader ? core_.backlog() : 0;
}

std::vector<MemberStatus> Driver::members() const {
  std::vector<MemberStatus> all;
  const core::Members& members = core_.members();
  const bool leads = core_.role() == Role::kLeader;
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    const ReplicaId id{i};
    if (!members.member(id)) continue;
    MemberStatus m;
    m.id = id;
    m.role = members.role(id);
    m.incarnation = members.incarnation(id);
    m.connected = id == options_.self || fabric_->connected(id);
    if (id == options_.self) {
      m.last = core_.last().index;
      m.durable = core_.durable().index;
      m.applied = core_.delivered();
      m.needs_checkpoint = core_.needs_checkpoint();
    } else if (leads) {
      m.streaming = core_.peer_state(id) == core::PeerState::kStreaming;
      m.needs_checkpoint = core_.peer_needs_checkpoint(id);
      m.last = core_.peer_last(id);
      m.durable = core_.peer_durable(id);
      m.applied = core_.peer_applied(id);
    }
    all.push_back(m);
  }
  return all;
}

std::vector<std::byte> Driver::group_facts() const {
  return encode_facts(options_.log_id, core_.promised_view(), core_.committed_config());
}

QuorumStatus Driver::quorum() const {
  QuorumStatus q;
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    const ReplicaId id{i};
    if (!core_.members().voter(id)) continue;
    ++q.voters;
    const bool answers = fabric_->connected(id) && !fabric_->quiet(id);
    if (id == options_.self || answers) ++q.answering;
  }
  q.led = core_.role() == Role::kLeader || core_.leader() != core::kNoReplica;
  return q;
}

GroupStatus Driver::status() const {
  GroupStatus s;
  s.role = core_.role();
  s.view = core_.promised_view();
  s.leader = core_.leader();
  s.last = core_.last().index;
  s.committed = core_.committed();
  s.durable = core_.durable().index;
  s.applied = replaying() ? store_->replayed() : core_.delivered();
  s.first = store_ ? store_->first() : Index{};
  if (short_of_memory_) s.no_room = options_.directory + ": the shared memory is full";
  if (store_ && !store_->no_room().empty()) s.no_room = store_->no_room();
  if (store_) s.synced = store_->synced();
  s.covered = core_.covered();
  s.failed = fatal_ != nullptr;
  s.removed = core_.role() == Role::kRemoved;
  s.needs_checkpoint = core_.needs_checkpoint();
  s.fetching = core_.fetching();
  s.changing = core_.changing();
  s.members = members();
  s.election = core_.last_election();
  const core::PullScore& p = core_.score();
  s.detection = {p.score(),       core::kScoreLow,   core::kScoreHigh,
                 core::kScoreMax, p.misses_needed(), core_.heartbeat_period_ns()};
  s.fabric = fabric_->status();
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    if (ReplicaId{i} != options_.self && fabric_->connected(ReplicaId{i})) ++s.connected;
  }
  return s;
}

}  // namespace crane::consensus
