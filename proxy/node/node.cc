// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/node.h"
#include "proxy/node/backlog_room.h"
#include "proxy/node/history_about.h"
#include "proxy/node/line_ups.h"
#include "proxy/node/placement.h"
#include "proxy/node/recovery/shipping.h"
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
// A stop waits until nothing has happened for the first, for at most the second.
constexpr std::int64_t kSettleNs = 80'000'000;
constexpr std::int64_t kStopNs = 1'500'000'000;
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

std::string reason_of(const Error& e) {
  return e.detail == 0 ? e.what : fmt::format("{}: {}", e.what, std::strerror(e.detail));
}

// Why the log could not be opened, and with which status the node ends.
std::pair<ExitStatus, std::string> why_no_log(const Error& e, const Config& config, bool restored) {
  if (e.code == Code::kUnsupported && config.host) {
    return {ExitStatus::kNotHere,
            fmt::format("[group] asks for what this host does not have: {}; see the line before",
                        e.what)};
  }
  if (e.code == Code::kGone && !config.on_disk()) {
    return {
        ExitStatus::kNoCheckpoint,
        fmt::format("what this replica holds of the log begins behind {}, and a majority of the "
                    "others, which would have the rest, is not there: it comes back with them",
                    restored ? "the newest checkpoint that can be used"
                             : "its first entry, and there is no checkpoint")};
  }
  if (e.code == Code::kGone) {
    return {ExitStatus::kNoCheckpoint,
            fmt::format("the log of this replica begins behind {} (see the line before): {}; copy "
                        "the newest directory of another replica's checkpoints into {} and start "
                        "this one again",
                        restored ? "the newest checkpoint that can be used"
                                 : "its first entry, and there is no checkpoint",
                        config.store_dir(), config.checkpoints_dir())};
  }
  return {ExitStatus::kNoConsensus,
          fmt::format("consensus in {}: {}", config.shm_dir, reason_of(e))};
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
      agreed_(digests_of(config)),
      policy_(grant_options(config)) {}

Node::~Node() {
  shipping_.reset();
  guard_.reset();
  proxy_.reset();
  forwarder_.reset();
  role_hook_.reset();
  control_socket_.reset();
  if (have_events_) {
    for (event* e : {&doorbell_event_, &consensus_event_, &timer_event_, &terminate_event_,
                     &interrupt_event_}) {
      if (event_initialized(e)) event_del(e);
    }
  }
  consensus_.reset();
  if (timer_fd_ >= 0) ::close(timer_fd_);
  if (base_ != nullptr) event_base_free(base_);
}

// --- setting up
// ------------------------------------------------------------------------------------

void Node::watch(event& e, int fd, event_callback_fn callback) {
  event_assign(&e, base_, fd, EV_READ | EV_PERSIST, callback, this);
  event_add(&e, nullptr);
}

bool Node::open() {
  base_ = event_base_new();
  timer_fd_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (base_ == nullptr || timer_fd_ < 0) {
    fail(ExitStatus::kNoSegment, "no event loop");
    return false;
  }
  began_ns_ = now_ns_ = monotonic_ns();  // the log's first entries may come while it is opened
  std::error_code ignored;
  std::filesystem::remove(config_.replica_dir() + "/" + setup::kDrainedMark, ignored);
  if (config_.test_only_faults) checkpoint::die_where_told(config_.replica_dir() + "/faults");
  open_checkpointer();
  open_restarter();
  if ((config_.restore || config_.on_disk()) && !find_checkpoint()) return false;
  auto segment = make_segment();
  if (!segment.ok()) {
    const Error e = segment.error();
    fail(ExitStatus::kNoSegment, fmt::format("{}: {}", config_.replica_shm_dir(), reason_of(e)));
    return false;
  }
  segment_ = std::move(segment).value();
  layout_ = &segment_->layout();
  dmt::set_fence_handler(leave_at_once);
  slot0_ = std::make_unique<Slot0>(*layout_);
  open_stall_watch();
  open_port_questions();
  // What a recording held before the checkpoint cannot be told from what followed it.
  const bool records = restored_from_.empty();
  auto outputs =
      Outputs::open(records ? config_.record : "", config_.replica, history_about(config_));
  if (!outputs.ok()) {
    const Error e = outputs.error();
    fail(ExitStatus::kBadConfiguration, fmt::format("record {}: {}", config_.record, reason_of(e)));
    return false;
  }
  outputs_ = std::move(outputs).value();
  if (!restored_from_.empty()) take_up_state();
  foretold_ = mode_.foretells(*stalls_, config_.replicas);

  proxy::ProxyOptions options;
  options.connection.send_buffer = layout_->header.configuration.send_buffer;
  options.connection.receive_window = dmt::kReceiveWindow;
  options.connection.first_window = dmt::kFirstWindow;
  options.queued_bytes_max = proxy::kQueuedBytesMax;
  proxy_ = std::make_unique<proxy::Proxy>(
      base_, options,
      [this](EntryType type, GrantTurns grant, std::span<const std::byte> body) {
        return propose(type, grant, body);
      },
      [this] { awake(); });
  proxy_->set_room([this](std::uint16_t port) {
    const BacklogRoom room = backlog_room(*layout_, port);
    return proxy::Proxy::Room{room.applied, room.connections};
  });
  if (config_.host) open_host();
  if (config_.host && !open_virtual_address()) return false;
  open_guard();
  open_control_socket();
  return open_consensus();
}

void Node::open_guard() {
  GuardCallbacks callbacks;
  callbacks.on_event = [this] { awake(); };
  callbacks.drain = [this] { drain(); };
  callbacks.on_started = [this](pid_t pid) { server_started(pid); };
  callbacks.on_ended = [this](int status) { server_ended(status); };
  callbacks.on_failed = [this](ExitStatus status, const std::string& why) { fail(status, why); };
  callbacks.on_prepared = [this] {
    checkpointer_->prepared(monotonic_ns());
    look_after_checkpoint();
  };
  callbacks.on_dumped = [this](const std::string& why_not, const std::string& refusal) {
    note_refusal(why_not.empty(), refusal);
    dumped(why_not);
  };
  callbacks.on_killed = [this](std::uint32_t process, std::uint32_t pid) {
    fail(ExitStatus::kServerDied,
         fmt::format("process {} (pid {} of the server) was killed on this replica only", process,
                     pid));
  };
  guard_ = std::make_unique<Guard>(base_, config_, *segment_, std::move(callbacks));
  keep_server_files();
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
    if (shipping_ != nullptr) shipping_->take_visitor(from, std::move(link));
  };
  callbacks.on_members = [this] { tell_members(); };
  callbacks.on_fatal = [this](const char* why) {
    leads_ = false;  // there is nothing to hand over any more
    removed_ = consensus_ != nullptr && consensus_->status().removed;
    if (removed_) supervisor_.removed();
    fail(ExitStatus::kLeftGroup, why);
  };
}

bool Node::open_consensus() {
  consensus::Options options;
  options.directory = config_.consensus_dir();
  std::error_code ignored;  // what matters is reported by open()
  std::filesystem::create_directories(options.directory, ignored);
  options.self = ReplicaId{config_.replica};
  options.replicas = config_.replicas;
  options.log_id = config_.log_id;
  options.members = config_.members;
  if (config_.ring_bytes != 0) options.ring_bytes = config_.ring_bytes;
  options.forget = config_.forget;
  if (config_.host) set_host_options(options);
  if (config_.host || config_.on_disk()) options.lasting_directory = config_.dir;
  if (config_.on_disk()) {
    options.durability = consensus::Durability::kDisk;
    options.store_directory = config_.store_dir();
  }
  set_callbacks(options.callbacks);
  options.urgent = true;
  auto opened = open_log(std::move(options));
  if (!opened.ok()) {
    const Error e = opened.error();
    const auto [status, why] = why_no_log(e, config_, !restored_from_.empty());
    fail(status, why);
    return false;
  }
  consensus_ = std::move(opened).value();
  if (config_.restore || consensus_->status().last != Index{0}) {
    comes_back_ = static_cast<std::uint64_t>(began_ns_);
  }
  if (!restored_from_.empty() || runs_all_again()) begin_catching_up();
  find_own_checkpoints();

  have_events_ = true;
  watch(consensus_event_, consensus_->event_fd(),
        [](int, short, void* node) { static_cast<Node*>(node)->awake(); });
  watch(timer_event_, timer_fd_, [](int fd, short, void* argument) {
    Node& node = *static_cast<Node*>(argument);
    node.awake();
    std::uint64_t expirations = 0;
    if (::read(fd, &expirations, sizeof expirations) > 0) node.armed_ns_ = proxy::kNever;
  });
  watch(doorbell_event_, segment_->doorbell_fd(), [](int fd, short, void* node) {
    static_cast<Node*>(node)->awake();
    char rings[256];
    if (::read(fd, rings, sizeof rings) < 0) return;  // spurious
  });
  watch_supervisor();
  // Ctrl-C goes to the whole group; SIGTERM means this node, and another one should lead.
  evsignal_assign(
      &terminate_event_, base_, SIGTERM,
      [](int, short, void* node) { static_cast<Node*>(node)->done_ = true; }, this);
  evsignal_assign(
      &interrupt_event_, base_, SIGINT,
      [](int, short, void* argument) {
        Node& node = *static_cast<Node*>(argument);
        if (!node.mode_.takes_interrupt()) node.begin_stop();
      },
      this);
  event_add(&terminate_event_, nullptr);
  event_add(&interrupt_event_, nullptr);
  return true;
}

// --- the loop
// --------------------------------------------------------------------------------------------

ExitStatus Node::run() {
  if (open()) {
    spdlog::info("replica {} of {} is up", config_.replica, config_.replicas);
    while (!done_) {
      iterate();
      if (done_) break;
      sleep_until_event();
    }
  }
  shut_down();
  pass_on_the_rest();
  spdlog::info("replica {} leaves with status {}", config_.replica, code(result_));
  return result_;
}

void Node::iterate() {
  for (int i = 0; i < kRoundsMax && !done_; ++i) {
    if (!round()) break;
  }
  throttle();
  tell_progress();
  if (serving_.is_due(now_ns_)) serving_.look(listen_queues(*layout_), now_ns_);
  outputs_->tick(now_ns_);
  if (slot0_->spooled_bytes() > kSpoolMax) {
    fail(ExitStatus::kLagging, "the server of this replica is too far behind the log");
  }
  if (stopping_ && now_ns_ - active_ns_ >= kSettleNs) done_ = true;
  if (now_ns_ >= leave_at_ns_) done_ = true;
  if (now_ns_ >= fit_at_ns_) {
    fit_at_ns_ = proxy::kNever;
    if (catch_up_until_ns_ == 0) consensus_->fit();
  }
  if (catch_up_until_ns_ != 0) look_whether_caught_up();
  consensus_->flush_doorbells();
}

// True when another round has something to do.
bool Node::round() {
  now_ns_ = monotonic_ns();
  if (proxy_->batch().empty()) busy_ = false;  // ask again
  if (drain() > 0 || applied() != active_applied_) {
    active_ns_ = now_ns_;
    active_applied_ = applied();
  }
  follow_role();
  if (proxy_->waits_for_room()) proxy_->look_for_room();
  propose_inputs();
  propose_on_own();
  if (mode_.watches_stalls()) look_for_stalls();
  ports_->step(leads_ && started_view_ == view_ && applied() >= start_ && !server_exited_);
  step_mode();
  propose_hash();
  if (checkpointer_->holds()) look_after_checkpoint();
  look_after_restart();
  ask_now_and_then();
  help_lagging();
  look_for_newer();
  tell_of_checkpoints();
  consensus_due_ns_ = consensus_->poll(static_cast<std::uint64_t>(now_ns_));
  look_at_quorum();
  if (shipping_ != nullptr) shipping_->step();
  if (stalls_->has_news() && mode_.watches_stalls()) look_for_stalls();
  if (done_) return false;  // fenced: nothing is admitted any more
  slot0_->pump();
  slot0_->admit();
  if (guard_ != nullptr && !guard_->running() && !exit_reported_ && value(first_start_) != 0 &&
      applied() >= first_start_ && !server_exited_) {
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
  if (done_) return;
  const ServerProgress server{applied(), server_exited_, exit_reported_, !held_.empty(),
                              [this] { return rest_point(); }};
  if (mode_.step(now_ns_, *layout_, server)) done_ = true;
}

bool Node::work_waiting() const noexcept {
  if (slot0_->outputs_waiting() || (stalls_->has_news() && mode_.watches_stalls()) || deposed_ ||
      role_changed_ || (!proxy_->batch().empty() && !busy_))
    return true;
  if (!leads_ || busy_ || server_exited_ || stopping_) return false;
  if (view_ != started_view_) return true;
  const dmt::SchedulerState& s = layout_->scheduler;
  if (applied() != seen_applied_) return true;
  const bool stalled = s.stalled.load(std::memory_order_relaxed) != 0 &&
                       s.holder.load(std::memory_order_acquire) == dmt::kHolderIdle;
  if (stalled != seen_stalled_) return true;
  const bool lined_up = s.lined_up.load(std::memory_order_relaxed) != 0 &&
                        s.holder.load(std::memory_order_acquire) == dmt::kHolderIdle;
  if (lined_up && proposed_ <= seen_applied_) return true;
  if ((s.grant_low.load(std::memory_order_relaxed) != 0) != seen_low_) return true;
  return proposed_ <= seen_applied_ && s.next_deadline.load(std::memory_order_relaxed) <
                                           s.node_timer.load(std::memory_order_relaxed);
}

void Node::sleep_until_event() {
  dmt::SchedulerState& s = layout_->scheduler;
  s.node_asleep.store(1, std::memory_order_relaxed);
  // Dekker with ring_doorbell: either we see what the server did, or it sees that we sleep.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (work_waiting()) {
    awake();
    event_base_loop(base_, EVLOOP_ONCE | EVLOOP_NONBLOCK);  // one pass only
    return;
  }
  arm_timer();
  event_base_loop(base_, EVLOOP_ONCE);
  awake();
}

void Node::awake() noexcept { layout_->scheduler.node_asleep.store(0, std::memory_order_relaxed); }

// Only earlier deadlines are set anew: a timer that fires too early costs less than a system call
// per iteration.
void Node::arm_timer() {
  std::int64_t due = static_cast<std::int64_t>(
      std::min<std::uint64_t>(consensus_due_ns_, static_cast<std::uint64_t>(proxy::kNever)));
  if (leads_ && own_due_ns_ != proxy::kNever) due = std::min(due, clock_.mono_at(own_due_ns_));
  // Output that the server wrote before a long computation leaves without a doorbell.
  const bool computes =
      leads_ && layout_->scheduler.holder.load(std::memory_order_relaxed) != dmt::kHolderIdle;
  if (computes) due = std::min(due, now_ns_ + kBusyLookNs);
  if (slot0_->spooling() || busy_ || proxy_->paused()) due = std::min(due, now_ns_ + kPollNs);
  if (proxy_->waits_for_room()) due = std::min(due, now_ns_ + proxy::kRoomLookNs);
  if (stopping_) due = std::min(due, now_ns_ + kSettleNs / 4);
  if (checks()) due = std::min(due, verify_.look_again_ns(now_ns_, work_done()));
  due = std::min({due, leave_at_ns_, fit_at_ns_, stall_due_ns_, checkpoint_due_ns_, restart_due_ns_,
                  tell_again_ns_, quorum_.due_ns()});
  if (catch_up_until_ns_ != 0) due = std::min(due, now_ns_ + kCatchUpLookNs);
  if (due >= armed_ns_) return;
  armed_ns_ = due;
  const std::int64_t at = std::max<std::int64_t>(due, 1);
  const itimerspec when{{0, 0}, {at / 1'000'000'000, at % 1'000'000'000}};
  ::timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &when, nullptr);
}

// Takes no more input, and leaves when what is committed was carried out: replicas that are stopped
// together have the same outputs.
void Node::begin_stop() {
  if (stopping_) return;
  stopping_ = true;
  active_ns_ = monotonic_ns();
  leave_at_ns_ = std::min(leave_at_ns_, active_ns_ + (exit_reported_ ? 0 : kStopNs));
}

void Node::shut_down() {
  const bool others_go_on = result_ == ExitStatus::kStopped && !stopping_ && !exit_reported_;
  if (consensus_ != nullptr && leads_ && others_go_on) {
    consensus_->abdicate("this node was told to stop");
    consensus_->poll(static_cast<std::uint64_t>(monotonic_ns()));
    consensus_->flush_doorbells();
  }
  if (proxy_ != nullptr) proxy_->lead(false);
  virtual_address_.give_up();
  if (layout_ != nullptr) {
    note_rest();
    layout_->scheduler.fenced.store(1, std::memory_order_seq_cst);
    if (consensus_ != nullptr) report_status();
  }
  stop_packing();
  mode_.stop();
  if (guard_ != nullptr) guard_->stop();
  note_end();
  if (outputs_ != nullptr) {
    outputs_->flush();
    if (result_ == ExitStatus::kStopped) outputs_->finish();  // in order: the recording is whole
  }
}

void Node::fail(ExitStatus status, const std::string& why) {
  if (done_) return;
  spdlog::error("{}", why);
  done_ = true;
  result_ = status;
  mode_.failed(why);
  // First nobody goes on here, then another one leads (D18), then it is told.
  if (layout_ != nullptr) layout_->scheduler.fenced.store(1, std::memory_order_seq_cst);
  if (consensus_ != nullptr && leads_) {
    consensus_->abdicate(why.c_str());
    consensus_->flush_doorbells();
  }
  supervisor_.fatal(status, why);
}

// --- the server ---------------------------------------------------------------------------------

void Node::start_server() {
  mode_.before_server(*layout_);
  const ServerPlacement there(config_);
  const bool dumped = !restored_from_.empty() && server_upper_.empty();
  const Outcome begun = dumped ? guard_->restore(restored_from_) : guard_->start(server_begin());
  if (!begun.ok()) {
    const Error e = begun.error();
    fail(ExitStatus::kServerNotStarted, fmt::format("{}: {}", config_.program, reason_of(e)));
  }
  if (!restored_from_.empty()) checkpoint::fault_point("return.asked");
}

}  // namespace crane::node
