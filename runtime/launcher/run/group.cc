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
#include <utility>

#include "checkpoint/orphans.h"
#include "runtime/control/schema.h"
#include "runtime/control/start_file.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/run/end_signals.h"
#include "runtime/setup/service_manager.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

constexpr int kOutputTimeoutMs = 5'000;  // for a stopped reader of the servers' output
constexpr int kLookTimeoutMs = 500;      // between two looks at a node that does not answer

sigset_t signals_of_group() {
  sigset_t set = end_signals();
  sigaddset(&set, SIGCHLD);
  return set;
}

supervise::Settings settings_of(const Options& options, const Profile& profile,
                                const GroupDirectories& directories, const Lasting& lasting) {
  return {.places = options.places(),
          .members = options.replicas,
          .on_disk = options.on_disk(),
          .keeps_files = lasting.keeps_files(),
          .stop_signal = profile.stop_signal,
          .perturb = options.perturb,
          .return_unit_ms = options.test_only_return_ms,
          .analysis = options.analysis_place(),
          .tool = options.analysis,
          .group = options.name,
          .dir = directories.dir(),
          .shm_dir = directories.shm_dir()};
}

}  // namespace

Group::Group(const Options& options, const ProgramPaths& parts, const Profile& profile,
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
      listeners_(options.publish),
      supervisor_(settings_of(options, profile, directories, lasting)) {
  for (int i = 0; i < options.places(); ++i) replicas_.emplace_back().number = i;
}

Group::~Group() {
  for (const auto& replica : replicas_) {
    if (replica.channel >= 0) close(replica.channel);
    if (replica.pidfd >= 0) close(replica.pidfd);
  }
  if (signals_ >= 0) close(signals_);
}

// --- start --------------------------------------------------------------------------------------

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
  setup::print_without_waiting();
  if (const Outcome p = agent_socket_.open(directories_.dir()); !p) print_message(p.error().text);
}

int Group::run() {
  print_message("starting " + std::to_string(options_.replicas) +
                (options_.replicas == 1 ? " replica of " : " replicas of ") + program_ +
                " (group " + options_.name + ", profile " + profile_.name + ", " + options_.mode +
                (options_.container ? ", in containers)" : ", without containers)"));
  open_signals();
  const Outcome recorded = write_record(directories_.dir(), record_);
  recorded.ok() ? step(supervise::Start{}) : step(supervise::Fail{recorded.error()});
  return conclude();
}

// Serves until the group ends.  Returns crane-run's exit status.
int Group::conclude() {
  serve();
  finish_output();
  end_analysis();
  const Outcome& problem = supervisor_.problem();
  if (problem.ok()) {
    remove_group();
    return supervisor_.status();
  }
  print_message(problem.error().text, setup::Level::kError);
  // If the first port was taken, the group never had a client.  A group that --strict ended was
  // started to find unhooked calls.  Neither holds data that matters.
  const bool had_clients =
      status_of(problem) != Status::kPortTaken || !listeners_.sockets().empty();
  if (supervisor_.has_served() && had_clients && status_of(problem) != Status::kUnhooked) {
    report_kept_data();
  } else {
    directories_.keep_logs();
    remove_group();
  }
  return problem.error().exit_status;
}

// Removes the files of a group that cannot be continued.
void Group::remove_group() {
  unsaved_.end(directories_.dir(), options_.places());
  remove_record(directories_.dir());
  if (directories_.keeps_logs())
    print_message("its logs and checkpoints stay in " + directories_.dir());
}

// Forwards the rest of the servers' output, unless its reader is stopped.
void Group::finish_output() {
  const auto deadline = now_ms() + kOutputTimeoutMs;
  for (show_output(); output_.waits() && now_ms() < deadline; show_output()) {
    pollfd room{STDOUT_FILENO, POLLOUT, 0};
    (void)poll(&room, 1, kLookTimeoutMs);
  }
}

// A group that fails keeps its data; names them and the command that continues with them.
void Group::report_kept_data() {
  directories_.keep_all();
  write_state();
  print_message(
      "the group's data stay in " + directories_.dir() + " and " + directories_.shm_dir() +
      "; the same command continues with them, or gives them up with --force-new-group: " +
      command_text(record_.words));
}

// --- the loop -----------------------------------------------------------------------------------

// Returns when no process of the group is left.
void Group::serve() {
  while (!supervisor_.over()) {
    std::vector<pollfd> fds{{signals_, POLLIN, 0},
                            {output_.fd(), POLLIN, 0},
                            {agent_socket_.fd(), POLLIN, 0},
                            {unsaved_.fd(), POLLIN, 0},
                            {output_.waits() ? STDOUT_FILENO : -1, POLLOUT, 0},
                            {setup::has_kept_messages() ? STDERR_FILENO : -1, POLLOUT, 0}};
    for (const auto& replica : replicas_) {
      const bool writes = replica.outbox.waits() && !replica.outbox.refused();
      fds.push_back({replica.channel, static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
    }
    for (const auto& replica : replicas_) fds.push_back({replica.pidfd, POLLIN, 0});
    int timeout = -1;
    const auto at_most = [&timeout](std::int64_t ms) {
      if (ms >= 0)
        timeout = static_cast<int>(timeout < 0 ? ms : std::min<std::int64_t>(timeout, ms));
    };
    const std::int64_t deadline = supervisor_.deadline_ms();
    if (deadline != supervise::Supervisor::kNever)
      at_most(std::max<std::int64_t>(0, deadline - now_ms()));
    if (has_silent() || any_starts()) at_most(kLookTimeoutMs);
    at_most(agent_socket_.pause_ms());
    for (const auto& replica : replicas_) {
      if (replica.outbox.refused()) at_most(control::Outbox::kAgainMs);
    }
    (void)poll(fds.data(), fds.size(), timeout);
    for (auto& replica : replicas_) flush(replica);
    look_for_adoption();
    if (fds[1].revents != 0 || fds[4].revents != 0) show_output();
    if (fds[5].revents != 0) setup::flush_messages();
    if (fds[3].revents != 0) unsaved_.look();
    for (auto& replica : replicas_) read_messages(replica);
    look_at_adopted();
    if (fds[2].revents != 0)
      agent_socket_.answer([this](const Json& request) { return answer(request); });
    if (fds[0].revents != 0) on_signals();
    step(supervise::Tick{});
    look_whether_up();
    show_starts();
  }
  start_line_.reset();
  // The processes that keep sockets for other nodes are no longer needed.
  (void)setup::end_connections(options_.name);
  wait_for_left_processes();
}

void Group::show_output() {
  if (start_line_) start_line_->hide();
  output_.show();
  if (const std::uint64_t missing = output_.take_missing(); missing > 0) {
    print_message("output of the server: " + control::size_text(missing) +
                      " were discarded before the reader of standard output took them; a replica "
                      "keeps the last 64 MB",
                  setup::Level::kWarning);
  }
}

bool Group::any_starts() const {
  const auto& all = supervisor_.replicas();
  return std::any_of(all.begin(), all.end(), [this](const auto& r) {
    return replicas_[static_cast<std::size_t>(r.number)].node > 0 && !r.ready;
  });
}

// A node that fetches or unpacks a checkpoint answers no request for that time.
void Group::show_starts() {
  for (const auto& r : supervisor_.replicas()) {
    pid_t node = at(r.number).node;
    if (node <= 0 || r.ready) continue;
    const Json operations = control::operations_of_start(home_of(r.number), node);
    if (operations.empty()) continue;
    const control::Operation one = control::operation_in(operations[0]);
    const std::string name =
        "replica " + std::to_string(r.number) + " starts: " + one.name + " " + one.step;
    if (!start_line_ || start_ != name) {
      start_ = name;
      start_line_.reset();
      start_line_.emplace(name, one.unit);
    }
    return start_line_->show(one.progress.done, one.progress.of);
  }
  start_line_.reset();
}

void Group::look_whether_up() {
  if (!when_up_ || !listens_ || !supervisor_.serving() || supervisor_.leader() < 0) return;
  std::exchange(when_up_, nullptr)();
}

void Group::on_signals() {
  signalfd_siginfo info{};
  while (read(signals_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    if (info.ssi_signo == SIGHUP) {
      print_message(kHungUp, setup::Level::kWarning);
      directories_.keep_logs();  // with this message
    }
    step(supervise::Stop{why_it_ends(static_cast<int>(info.ssi_signo))});
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

void Group::on_node_end(Replica& replica, int status) {
  read_messages(replica);  // its last messages count before its end is judged
  replica.node = -1;
  if (replica.pidfd >= 0) close(replica.pidfd);
  replica.pidfd = -1;
  close_channel(replica);
  step(supervise::NodeEnded{
      .replica = replica.number, .wait = status, .oom_kills = replica.oom_kills.since()});
}

// --- state.json ----------------------------------------------------------------------------

std::string Group::home_of(int replica) const {
  return directories_.dir() + "/r" + std::to_string(replica);
}

void Group::write_state() {
  // A missing pid is null, because kill(-1) would signal every process.
  const auto or_null = [](int number) { return number >= 0 ? Json(number) : Json(); };
  Json state{{"version", control::kVersion},
             {"group", options_.name},
             {"pid", getpid()},
             {"program", program_},
             {"dir", directories_.dir()},
             {"shm_dir", directories_.shm_dir()},
             {"leader", or_null(supervisor_.leader())},
             {"ready", supervisor_.serving()},
             {"replicas", Json::array()},
             {"listening", Json::array()}};
  for (const auto& r : supervisor_.replicas()) {
    const Replica& process = at(r.number);
    state["replicas"].push_back({{"replica", r.number},
                                 {"node_pid", or_null(process.node)},
                                 {"server_pid", or_null(process.server)},
                                 {"view", r.view},
                                 {"role", supervisor_.role_of(r)},
                                 {"ready", r.ready},
                                 {"member", r.member},
                                 {"votes", r.votes},
                                 {"exited", r.exited}});
  }
  for (const auto& [place, socket] : listeners_.sockets()) {
    if (!socket.serves) continue;
    state["listening"].push_back(
        {{"port", place.port}, {"published", socket.published}, {"addr", socket.address}});
  }
  (void)write_file(directories_.dir() + "/state.json", state.dump(1) + "\n");
  if (supervisor_.serving()) setup::service_manager().ready(supervisor_.summary());
}

}  // namespace crane::launcher
