// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/run/group.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "checkpoint/orphans.h"
#include "runtime/control/schema.h"
#include "runtime/launcher/channel.h"
#include "runtime/launcher/child.h"
#include "runtime/setup/service_manager.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

constexpr int kStopTimeoutMs = 5'000;    // for nodes to stop their servers in order
constexpr int kEndTimeoutMs = 20'000;    // for a server to end by itself
constexpr int kOutputTimeoutMs = 5'000;  // for a reader of the servers' output that is stopped
constexpr int kLookTimeoutMs = 500;      // between two looks at the analysis replica
constexpr int kExitTimeoutMs = 10'000;   // for the other replicas, once one server ended by itself

sigset_t signals_of_group() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, s);
  return set;
}

}  // namespace

Group::Group(const Options& options, const Parts& parts, const Profile& profile,
             const std::string& program, GroupDirectories& directories, const GroupRecord& record,
             const Lasting& lasting)
    : options_(options),
      parts_(parts),
      profile_(profile),
      program_(program),
      record_(record),
      directories_(directories),
      lasting_(lasting),
      unsaved_(options),
      output_(STDOUT_FILENO),
      analysis_(options.analysis, options.analysis_dir),
      listeners_(options.publish) {
  for (int i = 0; i < options.places(); ++i) {
    replicas_.emplace_back();
    replicas_.back().number = i;
    replicas_.back().returns = RestartLimiter(options.test_only_return_ms);
    replicas_.back().member = replicas_.back().votes = i < options.replicas;
  }
}

Group::~Group() {
  for (const auto& replica : replicas_) {
    if (replica.channel >= 0) close(replica.channel);
    if (replica.pidfd >= 0) close(replica.pidfd);
  }
  if (signals_ >= 0) close(signals_);
}

// --- start --------------------------------------------------------------------------------------

std::string Group::configuration(int number, const Begin& begin) const {
  NodeSetup setup{options_,
                  profile_,
                  parts_,
                  directories_.dir(),
                  directories_.shm_dir(),
                  program_,
                  number,
                  record_.log_id,
                  record_.secret,
                  begin,
                  lasting_.keeps_files()};
  return node_configuration(setup);
}

Outcome Group::start_node(Replica& replica, const Begin& begin) {
  const std::string home = directories_.dir() + "/r" + std::to_string(replica.number);
  const std::string file = home + "/config.json";
  if (auto p = write_file(file, configuration(replica.number, begin)); !p) return p;
  auto channel = make_channel();
  if (!channel) {
    return failure(Status::kSystem, "cannot start a node", channel.error().what,
                   strerror(channel.error().detail), "see the limits of this machine");
  }
  open_channel(replica, channel.value().first);
  replica.node = spawn_node(parts_.node, file, channel.value().second,
                            options_.verbose ? "" : home + "/node.out");
  close(channel.value().second);
  if (replica.node < 0) {
    return failure(Status::kSystem, "cannot start a node", parts_.node, strerror(errno),
                   "see the limits of this machine");
  }
  output_.watch(replica.number, home + "/server.log");
  detail("replica " + std::to_string(replica.number) + ": node " + std::to_string(replica.node));
  return Done{};
}

void hold_signals() {
  const sigset_t set = signals_of_group();
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

void Group::open_signals() {
  hold_signals();
  const sigset_t set = signals_of_group();
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  output_.open();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  signal(SIGPIPE, SIG_IGN);
  setup::say_without_waiting();
  if (const Outcome p = door_.open(directories_.dir()); !p) say(p.error().text);
}

Outcome Group::start() {
  open_signals();
  if (auto p = write_record(directories_.dir(), record_); !p) return p;
  // A perturbed group starts in an order of its seed.
  const auto count = static_cast<std::size_t>(options_.replicas);
  for (std::size_t i = 0; i < count; ++i) {
    Replica& replica = replicas_[(options_.perturb + i) % count];
    if (auto p = start_node(replica, {}); !p) return p;
  }
  write_state();
  return Done{};
}

int Group::run() {
  say("starting " + std::to_string(options_.replicas) +
      (options_.replicas == 1 ? " replica of " : " replicas of ") + program_ + " (group " +
      options_.name + ", profile " + profile_.name + ", " + options_.mode +
      (options_.container ? ", in containers)" : ", without containers)"));
  if (auto p = start(); !p) end_with(p.error());
  return conclude();
}

// Serves until the end; crane-run's status.
int Group::conclude() {
  serve();
  finish_output();
  analysis_.end(options_.name, options_.analysis_place());
  unsaved_.end(directories_.dir(), options_.places());
  if (problem_.ok()) {
    remove_record(directories_.dir());  // its logs may stay, but it has ended
    return status_;
  }
  say(problem_.error().text, setup::Level::kError);
  // A group whose first port was taken has heard of no client, and one that ends by --strict was
  // started to find that out.
  const bool heard = status_of(problem_) != Status::kPortTaken || !listeners_.sockets().empty();
  if (served_ && heard && status_of(problem_) != Status::kUnhooked) {
    say_what_stays();
  } else {
    directories_.keep_logs();
    remove_record(directories_.dir());  // there is nothing to go on with
  }
  return problem_.error().exit_status;
}

// All that was said and written, unless nothing reads it.
void Group::finish_output() {
  const auto deadline = now_ms() + kOutputTimeoutMs;
  for (output_.show(); output_.waits() && now_ms() < deadline; output_.show()) {
    pollfd room{STDOUT_FILENO, POLLOUT, 0};
    (void)poll(&room, 1, kLookTimeoutMs);
  }
}

// Data is not given up because the group ends by itself.
void Group::say_what_stays() {
  directories_.keep_all();
  write_state();
  say("what the group holds stays in " + directories_.dir() + " and " + directories_.shm_dir() +
      "; the same command goes on with it, with --force-new-group it gives that up: " +
      command_text(record_.words));
}

// --- the loop -----------------------------------------------------------------------------------

// Until no process of the group is left.
void Group::serve() {
  while (running() > 0 || somebody_returns() || somebody_is_unheard()) {
    std::vector<pollfd> fds{{signals_, POLLIN, 0},
                            {output_.fd(), POLLIN, 0},
                            {door_.fd(), POLLIN, 0},
                            {unsaved_.fd(), POLLIN, 0},
                            {output_.waits() ? STDOUT_FILENO : -1, POLLOUT, 0},
                            {setup::said_waits() ? STDERR_FILENO : -1, POLLOUT, 0}};
    for (const auto& replica : replicas_) {
      const bool writes = replica.outbox.waits() && !replica.outbox.refused();
      fds.push_back({replica.channel, static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
    }
    for (const auto& replica : replicas_) fds.push_back({replica.pidfd, POLLIN, 0});
    int timeout = -1;
    if (stop_deadline_ms_ != 0) {
      timeout = static_cast<int>(std::max<std::int64_t>(0, stop_deadline_ms_ - now_ms()));
    }
    const auto at_most = [&timeout](int ms) {
      if (ms >= 0) timeout = timeout < 0 ? ms : std::min(timeout, ms);
    };
    at_most(return_timeout());
    if (analysis_differs() || somebody_is_unheard()) at_most(kLookTimeoutMs);
    at_most(door_.pause_ms());
    for (const auto& replica : replicas_) {
      if (replica.outbox.refused()) at_most(control::Outbox::kAgainMs);
    }
    const int ready = poll(fds.data(), fds.size(), timeout);
    for (auto& replica : replicas_) flush(replica);
    look_for_adoption();
    look_after_returns();
    look_after_analysis();
    const bool due = stop_deadline_ms_ != 0 && now_ms() >= stop_deadline_ms_;
    if (ready == 0 && !due) continue;
    if (ready == 0) {
      if (phase_ == Phase::kStopping) {
        kill_nodes();
      } else {
        stop(ending_ ? "the server did not end within 20 s" : "the other replicas did not end");
      }
      continue;
    }
    if (fds[1].revents != 0 || fds[4].revents != 0) output_.show();
    if (fds[5].revents != 0) setup::flush_said();
    if (fds[3].revents != 0) unsaved_.look();
    for (auto& replica : replicas_) hear(replica);
    look_at_adopted();
    if (fds[2].revents != 0) door_.answer([this](const Json& request) { return answer(request); });
    if (fds[0].revents != 0) on_signals();
  }
  // Keepers of sockets waited for other nodes.
  (void)setup::end_connections(options_.name);
  // What the nodes left (container supervisors that clean up) has become ours: wait for it.
  const auto deadline = now_ms() + kExitTimeoutMs;
  while (now_ms() < deadline) {
    const pid_t left = waitpid(-1, nullptr, WNOHANG);
    if (left < 0) break;
    if (left == 0) poll(nullptr, 0, 5);
  }
  checkpoint::remove_what_was_left();
}

void Group::on_signals() {
  signalfd_siginfo info{};
  while (read(signals_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    if (phase_ == Phase::kStopping) {
      kill_nodes();  // asked twice
    } else {
      const char* const why = info.ssi_signo == SIGINT ? "interrupted" : "told to stop";
      if (!end_server(why)) stop(why);
    }
  }
  reap();
}

void Group::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (auto& replica : replicas_) {
      if (replica.node == pid) on_node_end(replica, status);
    }
  }
  checkpoint::end_orphans(directories_.dir());
  checkpoint::remove_directories_of_criu();
}

// --- what nodes say -----------------------------------------------------------------------------

void Group::on_message(Replica& replica, const std::string& json) {
  const Json message = Json::parse(json, nullptr, false);
  if (!message.is_object() || !message.contains("t") || !message["t"].is_string()) return;
  const std::string type = message["t"];
  replica.introduces = false;  // its sockets came before
  try {
    if (type == "listen") {
      on_listen(replica, message);
    } else if (type == "role") {
      on_role(replica, message.at("role"), message.value("view", std::uint64_t{0}));
    } else if (type == "server") {
      replica.server = message.at("pid");
      unsaved_.begin(directories_.dir() + "/r" + std::to_string(replica.number) + "/upper");
    } else if (type == "ready") {
      replica.ready = true;
      const bool all = std::all_of(replicas_.begin(), replicas_.end(), [&](const Replica& r) {
        return r.ready || !r.member || analyses(r);
      });
      if (all && phase_ == Phase::kStarting) {
        phase_ = Phase::kServing;
        served_ = true;
        say("all replicas run");
      }
    } else if (type == "exit") {
      on_exit(replica, message.at("status"), message.value("reason", "") == "signal");
    } else if (type == "members") {
      if (replica.leads) on_members(message.at("members"));
    } else if (type == "analysis") {
      say("analysis replica " + std::to_string(replica.number) + ": " + message.value("text", ""));
    } else if (type == "removed") {
      replica.removed = true;
    } else if (type == "drained") {
      replica.drained = true;
    } else if (type == "bring_back") {
      on_bring_back(message);
    } else if (type == "acceptor_only") {
      replica.acceptor_only = true;
      say("replica " + std::to_string(replica.number) +
              " votes, and has no server until a checkpoint is there: its log begins behind the "
              "newest one",
          setup::Level::kWarning);
    } else if (type == "refused") {
      refused_ = message.value("why", "");
    } else if (type == "fatal") {
      on_fatal(replica, message.value("code", 0), message.value("message", "no reason given"));
    }
  } catch (const Json::exception& malformed) {
    detail("message " + json + ": " + malformed.what());
  }
  answer_listens();
  write_state();
}

void Group::on_listen(Replica& replica, const Json& asked) {
  const std::uint16_t port = asked.at("port");
  handed_over_ = false;
  if (!listeners_.publishes(port)) return keep_inside(replica, port);
  if (somebody_introduces() && listeners_.sockets().count(port) == 0) {
    replica.asks_to_listen.push_back(asked.dump());
    return;
  }
  int fd = -1;
  bool fresh = false;
  const bool for_bind = asked.value("bind", false);
  const Outcome failed = listeners_.open(
      {port, asked.value("addr", "0.0.0.0"), asked.value("backlog", 0), for_bind}, fd, fresh);
  if (!failed) {
    tell(
        replica,
        {{"t", "listen_failed"}, {"port", port}, {"message", failed.error().text}, {"error", -fd}});
    if (phase_ == Phase::kStopping) return;
    if (for_bind) return say(failed.error().text + "; the server's bind fails");
    // Else clients reach the server at another port, or through sockets that nodes have.
    if (!took_over_ && listeners_.sockets().empty()) return end_with(failed.error());
    if (listeners_.unreached(port))
      say(failed.error().text + "; the group goes on, clients do not reach this port");
    return;
  }
  tell(replica, {{"t", "listener"}, {"port", port}}, fd);
  if (!fresh) return;
  const auto& socket = listeners_.sockets().at(port);
  const bool moved = socket.published != port;
  say("listening on port " + std::to_string(socket.published) +
      (moved ? " for the server's port " + std::to_string(port) : std::string()));
}

// A port of the server's own: a bind that waits succeeds, as no process of the machine can have it.
void Group::keep_inside(Replica& replica, std::uint16_t port) {
  tell(replica, {{"t", "not_published"}, {"port", port}});
  if (listeners_.unreached(port)) {
    say("the server listens on port " + std::to_string(port) +
        ", which no --publish names: clients do not reach it");
  }
}

void Group::on_role(Replica& replica, const std::string& role, std::uint64_t view) {
  const bool led = replica.leads;
  replica.leads = role == "leader";
  replica.view = view;
  if (replica.leads) {
    for (auto& other : replicas_) {
      if (other.number != replica.number && other.view < view) other.leads = false;
    }
    say("replica " + std::to_string(replica.number) + " leads (view " + std::to_string(view) + ")");
  } else if (led) {
    detail("replica " + std::to_string(replica.number) + " no longer leads");
  }
}

// The server of one replica ended by itself: so do the others, at the same point of its history.
void Group::on_exit(Replica& replica, int status, bool by_signal) {
  replica.exited = true;
  replica.exit_status = status;
  replica.by_signal = by_signal;
  const bool as_told = ending_ && (status < 128 || status == 128 + profile_.stop_signal);
  status_ = as_told ? 0 : status;
  detail("replica " + std::to_string(replica.number) + ": its server ended with status " +
         std::to_string(status));
  for (const auto& other : replicas_) {
    if (other.exited && other.exit_status != status) {
      say("the servers ended differently: replica " + std::to_string(other.number) + " with " +
          std::to_string(other.exit_status) + ", replica " + std::to_string(replica.number) +
          " with " + std::to_string(status));
    }
  }
  const bool all = std::all_of(replicas_.begin(), replicas_.end(), [&](const Replica& r) {
    return r.exited || r.node < 0 || r.acceptor_only || analyses(r);
  });
  if (all) {
    // Who asked for that end reads no log; everybody else does.
    const bool failed = status != 0 && !as_told && phase_ != Phase::kStopping;
    if (failed) directories_.keep_logs();
    const std::string number = std::to_string(status);
    const bool crashed = by_signal && failed;
    say((crashed ? "the server crashed by itself, at one place on all replicas: " +
                       how_ended(status - 128) + " (status " + number + ")"
                 : "the server ended with status " + number) +
            (failed ? "; its log: " + home_of(replica) + "/server.log, the node's beside it"
                    : std::string()),
        failed ? setup::Level::kError : setup::Level::kInfo);
    stop(nullptr);
  } else if (stop_deadline_ms_ == 0) {
    stop_deadline_ms_ = now_ms() + kExitTimeoutMs;
  }
}

void Group::on_fatal(Replica& replica, int code, const std::string& message) {
  const auto status = status_of_node_code(code);
  replica.fatal_code = code;
  replica.problem = failure(status, "replica " + std::to_string(replica.number), "stopped", message,
                            status == Status::kUnhooked
                                ? "without --strict such calls are counted, and the group goes on"
                                : "its log: " + log_of(replica));
}

// --- ends ---------------------------------------------------------------------------------------

void Group::on_node_end(Replica& replica, int status) {
  hear(replica);  // what it said last is read before it is judged
  replica.node = -1;
  replica.leads = false;
  replica.node_status = status;
  if (replica.pidfd >= 0) close(replica.pidfd);
  replica.pidfd = -1;
  close_channel(replica);
  write_state();
  if (phase_ == Phase::kStopping || replica.exited) {
    if (phase_ != Phase::kStopping && replica.exited)
      on_exit(replica, replica.exit_status, replica.by_signal);
    return;
  }
  if (analyses(replica)) return on_analysis_end(replica, status);
  if (is_gone(replica)) return;
  if (replica.problem.ok()) {
    replica.problem = failure(Status::kNodeFailed, "replica " + std::to_string(replica.number),
                              "its node is lost", how_ended(status), "its log: " + log_of(replica));
  }
  note_hand_over(replica);
  directories_.keep_logs();
  if (returns(replica)) plan_return(replica);
  judge(replica);
}

// After a replica was lost.
void Group::judge(Replica& lost) {
  const int total = voters();
  const Outcome last = lost.problem;
  // Strict mode: what the server of one replica calls, those of the others call, too.
  if (!lost.returns.planned() || (majority_fails() && !handed_over_)) {
    const bool program = status_of(last) == Status::kNeverCheckedIn || phase_ == Phase::kStarting ||
                         total == 1 || status_of(last) == Status::kUnhooked;
    if (program)
      return end_with(last.error());  // on one replica a starved machine, on all the program
    return end_with(failure(Status::kMajorityLost, "the group cannot go on", options_.name,
                            std::to_string(alive()) + " of " + std::to_string(total) +
                                " replicas are left, fewer than a majority, and those that were "
                                "started again failed by themselves",
                            "the last one's log: " + log_of(lost)));
  }
  lost.problem = Done{};
  const std::string left = std::to_string(alive()) + " of " + std::to_string(total) + " replicas";
  const bool goes_on = alive() * 2 > total;
  if (lost.votes)
    say(goes_on ? "the group goes on with " + left
                : "the group waits: " + left + " are left, fewer than a majority",
        setup::Level::kWarning);
}

void Group::end_with(const Error& problem) {
  if (problem_.ok()) problem_ = problem;
  stop(nullptr);
}

// What a server leaves is equal on all replicas when it ends at one turn.  False: it is stopped as
// it is; also when it was told already.
bool Group::end_server(const char* why) {
  if (!lasting_.keeps_files() || phase_ != Phase::kServing || leader() < 0 || ending_) return false;
  ending_ = true;
  say(std::string(why) + ": the server ends");
  tell(replicas_[static_cast<std::size_t>(leader())],
       {{"t", "signal"}, {"signo", profile_.stop_signal}});
  stop_deadline_ms_ = now_ms() + kEndTimeoutMs;
  return true;
}

void Group::stop(const char* why) {
  if (phase_ == Phase::kStopping) return;
  phase_ = Phase::kStopping;
  setup::service_manager().stopping();
  if (why != nullptr) say(std::string(why) + ", stopping");
  for (auto& replica : replicas_) tell(replica, {{"t", "stop"}});
  stop_deadline_ms_ = now_ms() + kStopTimeoutMs;
}

void Group::kill_nodes() {
  for (const auto& replica : replicas_) {
    if (replica.pidfd >= 0) {
      syscall(SYS_pidfd_send_signal, replica.pidfd, SIGKILL, nullptr, 0);
    } else if (replica.node > 0) {
      kill(replica.node, SIGKILL);
    }
  }
  kill_unheard();
  stop_deadline_ms_ = now_ms() + kStopTimeoutMs;
}

int Group::running() const {
  return static_cast<int>(std::count_if(replicas_.begin(), replicas_.end(),
                                        [](const Replica& r) { return r.node > 0; }));
}

int Group::alive() const {
  return static_cast<int>(std::count_if(replicas_.begin(), replicas_.end(), [](const Replica& r) {
    return r.node > 0 && r.votes && r.problem.ok();
  }));
}

int Group::voters() const {
  return static_cast<int>(
      std::count_if(replicas_.begin(), replicas_.end(), [](const Replica& r) { return r.votes; }));
}

int Group::leader() const {
  for (const auto& replica : replicas_) {
    if (replica.leads && replica.node > 0) return replica.number;
  }
  return -1;
}

// --- what others see ----------------------------------------------------------------------------

std::string Group::home_of(const Replica& replica) const {
  return directories_.dir() + "/r" + std::to_string(replica.number);
}

std::string Group::log_of(const Replica& replica) const { return home_of(replica) + "/node.log"; }

void Group::write_state() {
  // A pid that is not there is null: -1 would be everybody's for kill().
  const auto or_null = [](int number) { return number >= 0 ? Json(number) : Json(); };
  Json state{{"version", control::kVersion},
             {"group", options_.name},
             {"pid", getpid()},
             {"program", program_},
             {"dir", directories_.dir()},
             {"shm_dir", directories_.shm_dir()},
             {"leader", or_null(leader())},
             {"ready", phase_ == Phase::kServing},
             {"replicas", Json::array()},
             {"listening", Json::array()}};
  for (const auto& r : replicas_) {
    state["replicas"].push_back({{"replica", r.number},
                                 {"node_pid", or_null(r.node)},
                                 {"server_pid", or_null(r.server)},
                                 {"view", r.view},
                                 {"role", role_of(r)},
                                 {"ready", r.ready},
                                 {"member", r.member},
                                 {"votes", r.votes},
                                 {"exited", r.exited}});
  }
  for (const auto& [port, socket] : listeners_.sockets()) {
    if (!socket.serves) continue;
    state["listening"].push_back(
        {{"port", port}, {"published", socket.published}, {"addr", socket.address}});
  }
  (void)write_file(directories_.dir() + "/state.json", state.dump(1) + "\n");
  if (phase_ == Phase::kServing) setup::service_manager().ready(summary());
}

std::string Group::summary() const {
  const int leads = leader();
  return options_.name + ": " + std::to_string(alive()) + " of " + std::to_string(voters()) +
         " replicas run, " +
         (leads >= 0 ? "replica " + std::to_string(leads) + " leads" : "none leads");
}

}  // namespace crane::launcher
