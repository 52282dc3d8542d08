// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/node.h"
#include "proxy/node/backlog_room.h"
#include "proxy/node/consensus_options.h"
#include "proxy/node/history_about.h"
#include "proxy/node/line_ups.h"
#include "proxy/node/placement.h"
#include "proxy/node/unhooked.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "checkpoint/fault_points.h"
#include "dmt/hand_off.h"
#include "dmt/scheduler.h"
#include "dmt/tuning.h"
#include "proxy/clients/tuning.h"
#include "runtime/setup/preflight.h"

namespace crane::node {
namespace {

// Turns per grant where threads wait in loops.
constexpr GrantTurns kSpinningGrant = 16;
// Rounds of one iteration before the event loop looks at its sockets again.
constexpr int kRoundsMax = 16;
// While something waits for the server to make room, which rings no bell.
constexpr std::int64_t kPollNs = 1'000'000;
// How often a replica that comes back looks whether it has caught up.
constexpr std::int64_t kCatchUpLookNs = 50'000'000;
// How long output may lie while the server computes without a turn.
constexpr std::int64_t kBusyLookNs = 2'000'000;
// A server that is this far behind the log will not catch up before memory ends.
constexpr std::uint64_t kSpoolMax = 1ULL << 30;

proxy::GrantOptions grant_options(const Config& config) noexcept {
  proxy::GrantOptions o;
  o.classic = config.admission == dmt::Admission::kClassic;
  o.input = dmt::kInputGrantDefault;
  o.bubble_min = dmt::kBubbleGrantMin;
  o.bubble_max = dmt::kBubbleGrantMax;
  o.classic_bubble = dmt::kClassicBubbleGrant;
  o.classic_wait_ns = static_cast<std::int64_t>(dmt::kClassicWaitNs);
  // Threads that look for work in loops never let the server come to rest: inputs are admitted at
  // the ends of grants only, so these are short (rule 4).
  if (config.spins) o.input = o.bubble_min = o.bubble_max = kSpinningGrant;
  if (config.n_clock != 0) o.input = o.bubble_min = o.classic_bubble = config.n_clock;
  o.bubble_max = std::max(o.bubble_max, o.bubble_min);
  if (config.w_timeout_us != 0) o.classic_wait_ns = config.w_timeout_us * 1000LL;
  o.granularity_ns = proxy::kTimerGranularityNs;
  return o;
}

// What this node admits by itself cannot be admitted (its standard error says why), and there is no
// way back from there.  The keeper ends the server; that a process ended deposes a leader.
void leave_at_once() noexcept {
  spdlog::error("this replica is fenced, by its node");
  ::_exit(code(ExitStatus::kFenced));
}

}  // namespace

Node::Node(const Config& config, int control_fd, NodeMode& mode)
    : config_(config),
      supervisor_(control_fd),
      mode_(mode),
      files_(config_, config.keeps_files && mode.member()),
      leadership_([this](EntryType type, std::int64_t stamp_ns, GrantTurns grant,
                         std::span<const std::byte> body) {
        return consensus_->propose(static_cast<std::uint8_t>(type),
                                   static_cast<std::uint64_t>(stamp_ns), grant, body);
      }),
      agreed_(digests_of(config)) {}

Node::~Node() {
  recovery_.reset();
  guard_.reset();
  host_.reset();
  proxy_.reset();
  control_socket_.reset();
  consensus_.reset();
}

// --- setting up
// ------------------------------------------------------------------------------------

bool Node::open() {
  if (!loop_.open([this] { awake(); }).ok()) {
    fail(ExitStatus::kNoSegment, "no event loop");
    return false;
  }
  now_ns_ = monotonic_ns();  // the log's first entries may come while it is opened
  std::error_code ignored;
  std::filesystem::remove(config_.replica_dir() + "/" + setup::kDrainedMark, ignored);
  if (config_.test_only_faults) checkpoint::die_where_told(config_.replica_dir() + "/faults");
  recovery_ = make_recovery();
  open_intake();
  open_pacing();
  if (const auto failure = recovery_->begin()) {
    fail(failure->first, failure->second);
    return false;
  }
  const StartingPoint& start = recovery_->start();
  auto segment =
      start.revives() ? Segment::adopt(config_, start.directory()) : Segment::create(config_);
  if (!segment.ok()) {
    const Error e = segment.error();
    fail(ExitStatus::kNoSegment, fmt::format("{}: {}", config_.replica_shm_dir(), reason_of(e)));
    return false;
  }
  segment_ = std::move(segment).value();
  layout_ = &segment_->layout();
  dmt::set_fence_handler(leave_at_once);
  slot0_ = std::make_unique<Slot0>(*layout_);
  grants_ = std::make_unique<GrantProposer>(*layout_, grant_options(config_));
  open_stall_watch();
  open_port_questions();
  // What a recording held before the checkpoint cannot be told from what followed it.
  const bool records = !start.at_checkpoint();
  auto outputs =
      Outputs::open(records ? config_.record : "", config_.replica, history_about(config_));
  if (!outputs.ok()) {
    const Error e = outputs.error();
    fail(ExitStatus::kBadConfiguration, fmt::format("record {}: {}", config_.record, reason_of(e)));
    return false;
  }
  outputs_ = std::move(outputs).value();
  open_live_check();
  if (start.at_checkpoint()) take_up_state();
  foretold_ = mode_.foretells(*stalls_, config_.replicas);

  open_proxy();
  if (config_.host && !open_host()) return false;
  open_guard();
  open_recovery();
  open_control_socket();
  return open_consensus();
}

void Node::open_proxy() {
  proxy::ProxyOptions options;
  options.connection.send_buffer = layout_->header.configuration.send_buffer;
  options.connection.receive_window = dmt::kReceiveWindow;
  options.connection.first_window = dmt::kFirstWindow;
  options.queued_bytes_max = proxy::kQueuedBytesMax;
  proxy_ = std::make_unique<proxy::Proxy>(
      loop_.base(), options,
      [this](EntryType type, GrantTurns grant, std::span<const std::byte> body) {
        return propose(type, grant, body);
      },
      [this] { awake(); });
  proxy_->set_room([this](std::uint16_t port) {
    const BacklogRoom room = backlog_room(*layout_, port);
    return proxy::Proxy::Room{room.applied, room.connections};
  });
}

void Node::open_guard() {
  GuardCallbacks callbacks;
  callbacks.on_event = [this] { awake(); };
  callbacks.drain = [this] { drain(); };
  callbacks.on_started = [this](pid_t pid) { server_started(pid); };
  callbacks.on_ended = [this](int status) { server_ended(status); };
  callbacks.on_failed = [this](ExitStatus status, const std::string& why) { fail(status, why); };
  callbacks.on_prepared = [this] { recovery_->dump_prepared(monotonic_ns()); };
  callbacks.on_dumped = [this](const std::string& why_not, const std::string& refusal) {
    recovery_->dump_ended(why_not, refusal);
  };
  callbacks.on_killed = [this](std::uint32_t process, std::uint32_t pid) {
    fail(ExitStatus::kServerDied,
         fmt::format("process {} (pid {} of the server) was killed on this replica only", process,
                     pid));
  };
  guard_ = std::make_unique<Guard>(loop_.base(), config_, *segment_, std::move(callbacks));
  if (const std::string kept = files_.begin(); !kept.empty()) guard_->keep_files(kept);
}

void Node::set_callbacks(consensus::Callbacks& callbacks) {
  callbacks.on_committed = [this](const consensus::EntryView& e) { on_committed(e); };
  callbacks.on_role = [this](consensus::Role role, View view, ReplicaId leader) {
    on_role(role, view, leader);
  };
  callbacks.on_note = [this](ReplicaId from, std::span<const std::byte> note) {
    on_note(from, note);
  };
  callbacks.on_visitor = [this](ReplicaId from, std::unique_ptr<consensus::SecureLink> link) {
    recovery_->visited(from, std::move(link));
  };
  callbacks.on_members = [this] { tell_members(); };
  callbacks.on_fatal = [this](const char* why) {
    leadership_.gone();
    removed_ = consensus_ != nullptr && consensus_->status().removed;
    if (removed_) supervisor_.removed();
    fail(ExitStatus::kLeftGroup, why);
  };
}

bool Node::open_consensus() {
  consensus::Options options = consensus_options(config_);
  std::error_code ignored;  // what matters is reported by open()
  std::filesystem::create_directories(options.directory, ignored);
  set_callbacks(options.callbacks);
  auto opened = open_log(std::move(options));
  if (!opened.ok()) {
    const Error e = opened.error();
    const auto [status, why] = why_no_log(e, config_, recovery_->start().at_checkpoint());
    fail(status, why);
    return false;
  }
  consensus_ = std::move(opened).value();
  if (config_.restore || consensus_->status().last != Index{0}) {
    progress_->comes_back(static_cast<std::uint64_t>(monotonic_ns()));
  }
  recovery_->opened(*consensus_);

  open_requests();
  loop_.wake_by(consensus_->event_fd(), false);
  loop_.wake_by(segment_->doorbell_fd(), true);
  watch_supervisor();
  // Ctrl-C goes to the whole group; SIGTERM means this node, and another one should lead.
  loop_.on_signal(SIGTERM, [this] { end_.leave_now(); });
  loop_.on_signal(SIGINT, [this] {
    if (!mode_.takes_interrupt()) begin_stop();
  });
  return true;
}

// --- the loop
// --------------------------------------------------------------------------------------------

ExitStatus Node::run() {
  if (open()) {
    spdlog::info("replica {} of {} is up", config_.replica, config_.replicas);
    while (!end_.done()) {
      iterate();
      if (end_.done()) break;
      sleep_until_event();
    }
  }
  shut_down();
  pass_on_the_rest();
  spdlog::info("replica {} leaves with status {}", config_.replica, code(end_.result()));
  return end_.result();
}

void Node::iterate() {
  for (int i = 0; i < kRoundsMax && !end_.done(); ++i) {
    if (!round()) break;
  }
  throttle();
  report_progress();
  if (serving_.is_due(now_ns_)) serving_.look(listen_queues(*layout_), now_ns_);
  outputs_->tick(now_ns_);
  if (slot0_->spooled_bytes() > kSpoolMax) {
    fail(ExitStatus::kLagging, "the server of this replica is too far behind the log");
  }
  end_.step(now_ns_);
  requests_due_ns_ = requests_->step(now_ns_, recovery_->catches_up());
  recovery_->step_catch_up(now_ns_);
  consensus_->flush_doorbells();
}

// True when another round has something to do.
bool Node::round() {
  now_ns_ = monotonic_ns();
  if (proxy_->batch().empty()) leadership_.ask_again();
  end_.observe(drain() > 0, applied(), now_ns_);
  follow_role();
  if (proxy_->waits_for_room()) proxy_->look_for_room();
  propose_inputs();
  propose_on_own();
  if (mode_.watches_stalls()) look_for_stalls();
  ports_->step(leadership_.admitted(applied()) && !exit_.exited());
  step_mode();
  live_check_->step(live_check_seen(), now_ns_);
  step_recovery();
  consensus_due_ns_ = consensus_->poll(static_cast<std::uint64_t>(now_ns_));
  look_at_quorum();
  if (stalls_->has_news() && mode_.watches_stalls()) look_for_stalls();
  if (end_.done()) return false;  // fenced: nothing is admitted any more
  slot0_->pump();
  slot0_->admit();
  if (guard_ != nullptr && !guard_->running() && !exit_.reported() &&
      value(intake_->first_start()) != 0 && applied() >= intake_->first_start() &&
      !exit_.exited()) {
    start_server();
  }
  if (layout_->scheduler.fenced.load(std::memory_order_relaxed) != 0) {
    if (const std::string why = unhooked_reason(*layout_); !why.empty()) {
      fail(ExitStatus::kUnhooked, why);
    }
    fail(ExitStatus::kFenced, "the replica stopped itself; runtime.log says why");
  }
  return work_waiting();
}

void Node::step_mode() {
  if (end_.done()) return;
  const ServerProgress server{applied(), exit_.exited(), exit_.reported(), !intake_->empty(),
                              [this] { return rest_point(); }};
  if (mode_.step(now_ns_, *layout_, server)) end_.leave_now();
}

bool Node::work_waiting() const noexcept {
  if (slot0_->outputs_waiting() || (stalls_->has_news() && mode_.watches_stalls()) ||
      leadership_.has_change() || (!proxy_->batch().empty() && !leadership_.busy())) {
    return true;
  }
  if (!leadership_.leads() || leadership_.busy() || exit_.exited() || end_.stopping()) return false;
  return !leadership_.started() || grants_->has_news(applied(), leadership_.proposed());
}

void Node::sleep_until_event() {
  dmt::SchedulerState& s = layout_->scheduler;
  s.node_asleep.store(1, std::memory_order_relaxed);
  // Dekker with ring_doorbell: either we see what the server did, or it sees that we sleep.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (work_waiting()) {
    awake();
    loop_.poll();
    return;
  }
  arm_timer();
  loop_.wait();
  awake();
}

void Node::awake() noexcept { layout_->scheduler.node_asleep.store(0, std::memory_order_relaxed); }

void Node::arm_timer() {
  std::int64_t due = static_cast<std::int64_t>(
      std::min<std::uint64_t>(consensus_due_ns_, static_cast<std::uint64_t>(proxy::kNever)));
  const bool leads = leadership_.leads();
  if (leads && grants_->due_ns() != proxy::kNever) {
    due = std::min(due, leadership_.mono_at(grants_->due_ns()));
  }
  // Output that the server wrote before a long computation leaves without a doorbell.
  const bool computes =
      leads && layout_->scheduler.holder.load(std::memory_order_relaxed) != dmt::kHolderIdle;
  if (computes) due = std::min(due, now_ns_ + kBusyLookNs);
  if (slot0_->spooling() || leadership_.busy() || proxy_->paused()) {
    due = std::min(due, now_ns_ + kPollNs);
  }
  if (proxy_->waits_for_room()) due = std::min(due, now_ns_ + proxy::kRoomLookNs);
  due = std::min(due, live_check_->due_ns(live_check_seen(), now_ns_));
  if (recovery_->catches_up()) due = std::min(due, now_ns_ + kCatchUpLookNs);
  loop_.arm(std::min({due, end_.due_ns(now_ns_), requests_due_ns_, stall_due_ns_,
                      recovery_->due_ns(), progress_due_ns_, quorum_.due_ns()}));
}

void Node::begin_stop() { end_.request(monotonic_ns(), exit_.reported()); }

void Node::shut_down() {
  const bool others_go_on = end_.in_order() && !end_.stopping() && !exit_.reported();
  if (consensus_ != nullptr && leadership_.leads() && others_go_on) {
    consensus_->abdicate("this node was told to stop");
    consensus_->poll(static_cast<std::uint64_t>(monotonic_ns()));
    consensus_->flush_doorbells();
  }
  if (proxy_ != nullptr) proxy_->lead(false);
  if (host_ != nullptr) host_->give_up_address();
  if (layout_ != nullptr) {
    note_rest();
    layout_->scheduler.fenced.store(1, std::memory_order_seq_cst);
    if (consensus_ != nullptr) report_status();
  }
  if (recovery_ != nullptr) recovery_->stop();
  mode_.stop();
  if (guard_ != nullptr) guard_->stop();
  if (layout_ != nullptr && end_.in_order()) {
    files_.end(applied(), layout_->scheduler.clock, exit_.reported());
  }
  if (outputs_ != nullptr) {
    outputs_->flush();
    if (end_.in_order()) outputs_->finish();  // in order: the recording is whole
  }
}

void Node::fail(ExitStatus status, const std::string& why) {
  if (!end_.fail(status)) return;
  spdlog::error("{}", why);
  mode_.failed(why);
  // First nobody goes on here, then another one leads (D18), then it is told.
  if (layout_ != nullptr) layout_->scheduler.fenced.store(1, std::memory_order_seq_cst);
  if (consensus_ != nullptr && leadership_.leads()) {
    consensus_->abdicate(why.c_str());
    consensus_->flush_doorbells();
  }
  supervisor_.fatal(status, why);
}

// --- the server ---------------------------------------------------------------------------------

void Node::start_server() {
  mode_.before_server(*layout_);
  const ServerPlacement there(config_);
  if (const Outcome begun = recovery_->start_server(); !begun.ok()) {
    const Error e = begun.error();
    fail(ExitStatus::kServerNotStarted, fmt::format("{}: {}", config_.program, reason_of(e)));
  }
}

}  // namespace crane::node
