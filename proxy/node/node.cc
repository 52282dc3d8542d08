// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/node.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "dmt/base/clock.h"
#include "dmt/scheduler.h"
#include "dmt/stall.h"
#include "proxy/clients/encode.h"
#include "proxy/clients/tuning.h"
#include "proxy/host/consensus_options.h"
#include "proxy/host/last_words.h"
#include "proxy/host/out_of_band.h"
#include "proxy/host/unhooked.h"
#include "runtime/setup/service_manager.h"

namespace crane::node {
namespace {

// Rounds of one iteration before the event loop checks its sockets again.
constexpr int kRoundsMax = 16;
// Longest sleep while something waits for room, because no doorbell announces room.
constexpr std::int64_t kPollNs = 1'000'000;
// Interval at which a recovering replica checks whether it has caught up.
constexpr std::int64_t kCatchUpLookNs = 50'000'000;
// Longest time that output may wait while the server computes without a turn.
constexpr std::int64_t kBusyLookNs = 2'000'000;
// A longer lag of virtual time is logged.
constexpr std::int64_t kReportBehindNs = 1'000'000'000;
// A server that is this far behind the log will not catch up before memory is full.
constexpr std::uint64_t kSpoolMax = 1ULL << 30;

std::int64_t soonest(std::uint64_t due_ns) noexcept {
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(due_ns, static_cast<std::uint64_t>(proxy::kNever)));
}

}  // namespace

Node::Node(const Config& config, int control_fd, NodeMode& mode)
    : config_(config), mode_(mode), agreed_(digests_of(config)), supervisor_(control_fd) {}

// In reverse order, but consensus last, because the other parts use it.
Node::~Node() {
  http_.reset();
  control_socket_.reset();
  operator_links_.reset();
  recovery_.reset();
  server_.reset();
  host_.reset();
  proxy_.reset();
  consensus_.reset();
}

ExitStatus Node::run() {
  if (open()) {
    spdlog::info("replica {} of {} is up", config_.replica, config_.replicas);
    if (host_ != nullptr) host_->up();
    while (!end_.done()) {
      for (int i = 0; i < kRoundsMax && !end_.done(); ++i) {
        if (!round()) break;
      }
      proxy_->prune_followed();
      proposals_->pace(server_->applied(), server_->scheduler_link().waiting_bytes(),
                       recovery_->log_is_full(), now_ns_);
      due_.progress = report_progress();
      due_.lead = watch_lead();
      status_->step(now_ns_);
      if (http_ != nullptr) http_->step(now_ns_);
      server_->outputs().tick(now_ns_);
      server_->step_trials(now_ns_);
      if (server_->scheduler_link().spooled_bytes() > kSpoolMax) {
        fail(ExitStatus::kLagging, "the server of this replica is too far behind the log");
      }
      end_.step(now_ns_);
      due_.requests = requests_->step(now_ns_);
      consensus_->flush_doorbells();
      if (!end_.done()) sleep_until_event();
    }
  }
  shut_down();
  forward_remaining_clients();
  if (status_ != nullptr) status_->leaves(end_.result());
  spdlog::info("replica {} leaves with status {}", config_.replica, code(end_.result()));
  return end_.result();
}

replica::Life Node::life() const noexcept {
  replica::Life l;
  const Index start = intake_->first_start();
  l.member = mode_.member();
  l.stopping = end_.stopping();
  l.acceptor_only = recovery_->acceptor_only();
  l.begun = server_->begun();
  l.ended = server_->exit().exited();
  l.server_handed_over = recovery_->handed_over();
  l.reached_start = value(start) != 0 && server_->applied() >= start;
  l.leads = leadership_.leads();
  l.keeps_leading = consensus_->keeps_leading();
  l.started = leadership_.started();
  l.takes_clients = proxy_->leading();
  l.hands_over = requests_->hands_over();
  return l;
}

// --- one iteration ------------------------------------------------------------------------------

// True: another round has something to do.
bool Node::round() {
  now_ns_ = monotonic_ns();
  leadership_.runs(now_ns_, now_ns_);
  const ServerExit& exit = server_->exit();
  dmt::Layout& layout = server_->layout();
  const auto look_for_stalls = [this] {
    // Also after the own server has ended: the others' servers need its passed clocks to end.
    const bool admitted = leadership_.admitted(server_->applied());
    const StallWatch::Next next = stalls_->step(now_ns_, {leadership_.started(), admitted});
    due_.stalls = next.due_ns;
    if (next.diverged != nullptr) fail(ExitStatus::kFenced, next.diverged);
  };
  if (proxy_->batch().empty()) leadership_.ask_again();
  // Also if the lead is lost and the proxy does not know it yet.
  proxy_->hold_output(life().holds_output());
  const bool output = server_->drain() > 0;
  look_for_memory();
  logs_.step(now_ns_);
  end_.observe(output, server_->applied(), now_ns_);
  service_->follow_role(server_->applied(), life().is_active(), end_.stopping(), now_ns_);
  if (proxy_->waits_for_room()) proxy_->look_for_room();
  propose_inputs();
  if (life().may_propose()) proposals_->propose_grants(server_->applied(), now_ns_);
  if (mode_.watches_stalls()) look_for_stalls();
  due_.slices = slices_->step(now_ns_, life().may_propose(), service_->supervised());
  const bool admitted = leadership_.admitted(server_->applied());
  listeners_->step(admitted && !exit.exited(), now_ns_);
  const ServerProgress progress{server_->applied(), exit.exited(), exit.reported(),
                                !intake_->empty(), server_.get()};
  if (!end_.done() && mode_.step(now_ns_, layout, progress)) end_.leave_now();
  due_.check = live_check_->step(life().serves(), intake_->counts(), now_ns_);
  recovery_->step({proxy_->leading(), admitted, end_.stopping(), end_.done()}, now_ns_);
  due_.consensus = soonest(consensus_->poll(static_cast<std::uint64_t>(now_ns_)));
  if (life().watches_quorum()) service_->look_at_quorum(consensus_->quorum(), now_ns_);
  if (stalls_->has_news() && mode_.watches_stalls()) look_for_stalls();
  if (end_.done()) return false;  // fenced: admits no more entries
  server_->scheduler_link().pump();
  server_->scheduler_link().admit();
  proxy_->resume_reading();
  if (life().may_start_server()) {
    const Outcome begun = server_->start([this] { return recovery_->start_server(); });
    if (!begun.ok()) {
      fail(ExitStatus::kServerNotStarted,
           fmt::format("{}: {}", config_.program, begun.error().message()));
    }
  }
  if (layout.scheduler.fenced.load(std::memory_order_relaxed) != 0) {
    if (const std::string why = unhooked_reason(layout); !why.empty()) {
      fail(ExitStatus::kUnhooked, why);
    }
    fail(ExitStatus::kFenced, "the replica stopped itself" + last_words(config_));
  }
  return work_waiting();
}

// Checks the memory for the server; the log's memory is checked where the log is written.
void Node::look_for_memory() {
  Segment& segment = server_->segment();
  const bool was_short = segment.short_of_memory();
  if (segment.look_ahead() != was_short) return;
  if (was_short) {
    spdlog::info("{}: shared memory has room for the server again", segment.directory());
  } else {
    spdlog::warn(
        "{}: shared memory is full: the server's memory cannot grow, so inputs wait; remove other "
        "files from that file system, or mount -o remount,size= it larger",
        segment.directory());
  }
}

// After an outage, inputs that clients have sent meanwhile are proposed before any later stamp.
void Node::propose_inputs() {
  const bool all = leadership_.waits_for_inputs() && proxy_->leading() &&
                   proxy_->read_all(leadership_.outages());
  proposals_->propose_inputs(now_ns_);
  if (!all || !proxy_->batch().empty()) return;
  const std::int64_t behind_ns = leadership_.resume_time(now_ns_);
  if (behind_ns < kReportBehindNs) return;
  spdlog::info("virtual time is {} ms behind after an outage, and is catching up",
               behind_ns / 1'000'000);
}

bool Node::work_waiting() const noexcept {
  const bool stalls = stalls_->has_news() && mode_.watches_stalls();
  const bool inputs = !proxy_->batch().empty() && !leadership_.busy();
  if (server_->scheduler_link().outputs_waiting() || stalls || leadership_.has_change() || inputs) {
    return true;
  }
  if (!leadership_.leads() || leadership_.busy() || !life().is_active()) return false;
  return !leadership_.started() || proposals_->has_news(server_->applied());
}

void Node::sleep_until_event() {
  if (server_->trials().polls() && loop_.poll_for([this] { return work_waiting(); })) return;
  dmt::SchedulerState& s = server_->layout().scheduler;
  s.node_asleep.store(1, std::memory_order_relaxed);
  // Dekker with ring_doorbell: the node sees the server's work, or the server sees it asleep.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (work_waiting()) {
    server_->node_awake();
    loop_.poll();
    return;
  }
  std::int64_t due = std::min({due_.first(), proposals_->due_ns(), service_->due_ns(),
                               recovery_->due_ns(), end_.due_ns(now_ns_), status_->due_ns()});
  // Output that the server wrote before a long computation is sent without a doorbell.
  const bool computes =
      leadership_.leads() && s.holder.load(std::memory_order_relaxed) != dmt::kHolderIdle;
  if (computes) due = std::min(due, now_ns_ + kBusyLookNs);
  if (server_->scheduler_link().spooling() || leadership_.busy() || proxy_->paused()) {
    due = std::min(due, now_ns_ + kPollNs);
  }
  if (http_ != nullptr) due = std::min(due, http_->due_ns());
  if (proxy_->waits_for_room()) due = std::min(due, now_ns_ + proxy::kRoomLookNs);
  if (recovery_->catches_up()) due = std::min(due, now_ns_ + kCatchUpLookNs);
  leadership_.runs(now_ns_, due);
  loop_.arm(due);
  loop_.wait();
  server_->node_awake();
}

// Reports to the leader, which may wait for it; returns when to do so again.
std::int64_t Node::report_progress() {
  if (!life().reports_progress()) return proxy::kNever;
  const Index applied = server_->applied();
  progress_.committed(intake_->last_for_server(), now_ns_);
  if (recovery_->catches_up()) {
    recovery_->step_catch_up(progress_.behind_ns(applied, now_ns_));
  }
  if (const auto lag = progress_.new_lag(applied, recovery_->catches_up(), now_ns_)) {
    consensus_->lags(static_cast<std::uint64_t>(lag->ns), lag->ran);
  }
  if (leadership_.leads() || recovery_->holds_server(applied) ||
      value(leadership_.leader()) >= config_.replicas) {
    return proxy::kNever;
  }
  const auto next = progress_.step(applied, recovery_->catches_up(), now_ns_);
  if (next.note) (void)send(*consensus_, leadership_.leader(), *next.note);
  return next.due_ns;
}

// While this replica leads, another replica's server may be ahead of the own one.
std::int64_t Node::watch_lead() {
  const bool no_server = recovery_->acceptor_only();
  const bool leads = life().can_hand_over_lead();
  const Index applied = server_->applied();
  replica::LeadWatch::Inputs seen{leads, applied, 0, 0, !no_server};
  std::vector<ReplicaId> voters;
  if (leads && !no_server) {
    seen.behind_ns = progress_.behind_ns(applied, now_ns_);
    seen.clock = dmt::clock_now(server_->layout());
  }
  if (leads && (no_server || seen.behind_ns >= replica::LeadWatch::kAskAfterNs)) {
    for (const consensus::MemberStatus& m : consensus_->members()) {
      if (replica::LeadWatch::may_take_lead(m, ReplicaId{config_.replica})) voters.push_back(m.id);
    }
  }
  const replica::LeadWatch::Next actions = lead_watch_.step(seen, voters, now_ns_);
  if (actions.asks) {
    for (const ReplicaId to : voters) {
      (void)send(*consensus_, to, replica::ServerPlaceMessage{});
    }
  }
  if (!actions.successor ||
      (!no_server && server_->monitor().waits_for_disk() && lead_watch_.waits_for_disk(now_ns_))) {
    return actions.due_ns;
  }
  const Outcome asked = consensus_->transfer(*actions.successor);
  if (asked.ok()) {
    lead_watch_.handed_over(now_ns_);
    if (no_server) {
      spdlog::info("the lead goes to replica {}, which has a server", value(*actions.successor));
    } else {
      spdlog::warn(
          "the server of this replica has not run entry {} for {} ms, and that of replica {} has: "
          "the lead goes there",
          value(applied) + 1, seen.behind_ns / 1'000'000, value(*actions.successor));
    }
  }
  return actions.due_ns;
}

// --- the end ------------------------------------------------------------------------------------

void Node::shut_down() {
  if (host_ != nullptr) setup::service_manager().stopping();
  const bool opened = server_ != nullptr && server_->opened();
  const bool in_order = end_.in_order();
  // A replica that still has to run missed entries has recorded less than the others.
  const bool whole = in_order && recovery_ != nullptr && !recovery_->catches_up();
  if (consensus_ != nullptr && leadership_.leads() && in_order && !end_.stopping() &&
      !server_->exit().reported()) {  // the others continue
    abdicate("this node was requested to stop");
    consensus_->poll(static_cast<std::uint64_t>(monotonic_ns()));
    consensus_->flush_doorbells();
  }
  if (proxy_ != nullptr) proxy_->lead(false);
  if (host_ != nullptr) host_->release_address();
  if (opened) {
    server_->note_rest(whole);
    server_->fence();
    if (status_ != nullptr) status_->report();
  }
  if (recovery_ != nullptr) recovery_->stop();
  mode_.stop();
  if (opened) server_->stop(in_order, whole);
}

// The group does not need a removed replica, but clients came through its host: they stay connected
// to the leader until they leave, or the operator stops the node.
void Node::forward_remaining_clients() {
  if (!end_.removed() || host_ == nullptr || host_->connections() == 0) return;
  http_.reset();
  control_socket_.reset();
  operator_links_.reset();
  loop_.stop_waking();
  proxy_.reset();      // closes the ports: no new clients
  consensus_.reset();  // the members see this replica gone
  spdlog::info("{} clients are forwarded until they leave; SIGTERM ends that",
               host_->connections());
  end_.resume();
  while (!end_.done() && !end_.stopping() && host_->connections() > 0) loop_.wait();
}

void Node::fail(ExitStatus status, const std::string& why) {
  if (!end_.fail(status)) return;
  const bool recovers = status == ExitStatus::kTooFarBehind;  // its next process does
  spdlog::log(recovers ? spdlog::level::warn : spdlog::level::err, "{}", why);
  mode_.failed(why);
  // First this replica stops, then another one leads (D18), then crane-run gets the message.
  if (server_ != nullptr && server_->opened()) server_->fence();
  // Its clients may have got wrong output: no other replica must continue their connections.
  const bool differs =
      status == ExitStatus::kDiverged || (status == ExitStatus::kFenced && !server_->was_refused());
  if (differs && proxy_ != nullptr) proxy_->end();
  if (consensus_ != nullptr && leadership_.leads()) {
    abdicate(why.c_str());
    consensus_->flush_doorbells();
  }
  supervisor_.fatal(status, why);
}

}  // namespace crane::node
