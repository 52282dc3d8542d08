// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/agent/host_agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "checkpoint/orphans.h"
#include "dmt/base/oom_kills.h"
#include "dmt/base/read_text.h"
#include "runtime/control/schema.h"
#include "runtime/launcher/agent/agent_socket.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/control_client.h"
#include "runtime/launcher/node_setup.h"
#include "runtime/launcher/return_notice.h"
#include "runtime/setup/branch_counter.h"
#include "runtime/setup/data_in_use.h"
#include "runtime/setup/group_file.h"
#include "runtime/setup/host_address.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/program.h"
#include "runtime/setup/program_files.h"
#include "runtime/setup/secret.h"
#include "runtime/setup/version.h"
#include "runtime/supervise/supervisor.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using setup::failure;
using setup::GroupFile;
using setup::status_of;

constexpr int kAskMs = 1000;               // limit for a node's answer
constexpr int kAskEveryMs = 100;           // between requests until the node serves
constexpr int kAskServingMs = 1000;        // between later requests
constexpr int kFlushMs = 5'000;            // for the last messages to crane-run
constexpr int kEndMs = 45'000;             // for another agent to end
constexpr std::size_t kBacklog = 1 << 20;  // bytes kept for a crane-run that does not read

// Messages to crane-run.  Never waits for crane-run: a stopped terminal must not stop a node.
class Wire {
 public:
  Wire() { fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK); }
  void send(const Json& message, bool may_drop = false) {
    if (may_drop && pending_.size() > kBacklog) return;
    pending_ += message.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
    flush();
  }
  bool waiting() const { return !pending_.empty(); }
  void flush() {
    while (!pending_.empty()) {
      const ssize_t n = write(STDOUT_FILENO, pending_.data(), pending_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno != EAGAIN) pending_.clear();  // the reader is gone
      if (n <= 0) return;
      pending_.erase(0, static_cast<std::size_t>(n));
    }
  }
  void finish() {
    const auto deadline = now_ms() + kFlushMs;
    for (flush(); waiting() && now_ms() < deadline; flush()) {
      pollfd fd{STDOUT_FILENO, POLLOUT, 0};
      poll(&fd, 1, kAskEveryMs);
    }
  }

 private:
  std::string pending_;
};

// The process that holds the lock of an agent's directory; -1: none.
pid_t holder_of(const fs::path& home) {
  const int fd = open((home / "lock").c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return -1;
  const bool held = flock(fd, LOCK_EX | LOCK_NB) != 0;
  close(fd);
  pid_t pid = -1;
  if (held) std::ifstream(home / "pid") >> pid;
  return pid;
}

// Stops all agents of a group on this host and waits for their ends.  Returns their number.
int end_agents(const std::string& dir, const std::string& name) {
  std::vector<fs::path> homes;
  std::error_code none;
  const fs::path group = fs::path(dir.empty() ? setup::default_directory() : dir) / name;
  for (const auto& entry : fs::directory_iterator(group, none)) {
    if (entry.path().filename().string()[0] != 'h') continue;
    if (const pid_t pid = holder_of(entry.path()); pid > 0 && kill(pid, SIGINT) == 0) {
      homes.push_back(entry.path());
    }
  }
  const auto deadline = now_ms() + kEndMs;
  for (const auto& home : homes) {
    while (holder_of(home) > 0 && now_ms() < deadline) poll(nullptr, 0, 20);
  }
  return static_cast<int>(homes.size());
}

// runtime/supervise decides what to do with the host's replica; HostAgent carries it out.
class HostAgent {
 public:
  // A byte written to `release_pipe` releases the remote shell.
  explicit HostAgent(int release_pipe) : release_pipe_(release_pipe) {}
  int run();

 private:
  void on_command(const Json& command);
  Outcome prepare(const Json& command);
  void stop(int signal);
  void step(supervise::Event event);
  void carry_out(const supervise::StartNode& a);
  void carry_out(const supervise::EndNode& a) {
    if (node_.pid > 0) kill(node_.pid, a.signal);
  }
  void carry_out(const supervise::PrintMessage& a) {
    wire_.send({{"t", "line"}, {"text", a.text}});
  }
  void carry_out(const supervise::WriteNotice& a) { write_notice(replica_home(), a); }
  void carry_out(const supervise::RemoveNotice&) { remove_notice(replica_home()); }
  void carry_out(const supervise::Answer& a) { answer_ = answer_of(a); }
  void carry_out(const supervise::StaysDrained& a);
  void carry_out(const supervise::BroughtBack&);
  void carry_out(const supervise::Leave& a);
  void carry_out(const supervise::GiveUp& a);
  template <typename Other>
  void carry_out(const Other&) {}  // actions of groups only
  Json answer(const Json& request);
  void on_disconnect();
  void on_signals();
  void on_node_end(int status);
  void ask_node_state();
  std::string replica_home() const;
  std::string drained_mark() const;
  int timeout() const;
  void fail(const Error& problem);

  Wire wire_;
  AgentSocket agent_socket_;
  setup::ProgramPaths parts_;
  setup::GroupDirectories directories_;
  GroupFile file_;
  std::string program_, last_line_, last_state_;
  OomKills oom_kills_;  // since the node began
  int replica_ = -1;
  Child node_;
  Lines commands_, lines_;
  int release_pipe_, signals_ = -1;
  bool connected_ = true, started_ = false, serves_ = false, done_ = false;
  std::int64_t ask_ms_ = 0;
  int status_ = 0;
  std::optional<supervise::Supervisor> supervisor_;  // set when the group is known
  std::deque<supervise::Event> events_;
  bool steps_ = false;
  Json answer_;  // `supervisor_`'s answer to crane-ctl
};

void HostAgent::fail(const Error& problem) {
  wire_.send({{"t", "problem"}, {"status", problem.exit_status}, {"text", problem.text}});
  status_ = problem.exit_status;
  directories_.remove_host(setup::GroupDirectories::Removal::kNothing);
  done_ = true;
}

// Makes all checks that are possible before anything runs, and writes the node's files.
Outcome HostAgent::prepare(const Json& command) {
  const std::string path = "the file that crane-run sent";
  if (auto p = setup::parse_group_file(command.at("file"), path, file_); !p) return p;
  replica_ = command.at("replica");
  if (auto p = setup::find_program(file_.command[0], program_); !p) return p;
  if (auto p = setup::check_program(program_); !p) return p;
  if (auto p = setup::check_machine(file_.container, file_.publish); !p) return p;
  if (file_.branch_counter) {  // the node checks that it suits the other options
    if (auto p = setup::check_branch_event(); !p) return p;
  }
  if (auto p = setup::check_virtual_ip(file_.virtual_ip); !p) return p;
  if (file_.state_dir.empty()) file_.state_dir = setup::default_directory();
  const std::string base = file_.state_dir + "/" + file_.name + "/base";
  if (auto p = setup::check_not_in_use(file_.data, base); !p) return p;
  const int replicas = static_cast<int>(file_.replicas.size());
  const setup::GroupPlace place{file_.name, file_.state_dir, replicas,     file_.record,
                                false,      false,           file_.ring_mb};
  if (auto p = directories_.create_host(place, replica_); status_of(p) == Status::kGroupExists) {
    return failure(status_of(p), p.error().text + " (--stop stops a group of crane-run --hosts)");
  } else if (!p) {
    return p;
  }
  const std::string& home = directories_.host_dir();
  file_.secret_file = home + "/secret";
  if (auto p = setup::write_secret(file_.secret_file, command.at("secret")); !p) return p;
  if (auto p = write_file(home + "/pid", std::to_string(getpid()) + "\n"); !p) return p;
  supervisor_.emplace(supervise::Settings{.first = replica_, .host = true, .group = file_.name});
  if (auto p = agent_socket_.open(home); !p) wire_.send({{"t", "line"}, {"text", p.error().text}});
  return write_file(home + "/group.toml", setup::to_toml(file_));
}

// Handles the event and then those that its actions cause (SUP-S1).
void HostAgent::step(supervise::Event event) {
  if (!supervisor_) return;
  events_.push_back(std::move(event));
  if (std::exchange(steps_, true)) return;
  for (; !events_.empty(); events_.pop_front()) {
    for (const auto& action : supervisor_->step(events_.front(), now_ms())) {
      std::visit([this](const auto& a) { carry_out(a); }, action);
    }
  }
  steps_ = false;
}

void HostAgent::carry_out(const supervise::StartNode& a) {
  using From = supervise::Plan::From;
  std::error_code ignored;
  std::vector<std::string> words{parts_.node, "--config", directories_.host_dir() + "/group.toml",
                                 "--replica", std::to_string(replica_)};
  fs::remove(drained_mark(), ignored);
  // With durability memory, the memory is gone when all replicas were stopped; now all start again.
  const bool fresh = a.plan.from == From::kBeginning && file_.durability == "memory";
  if (fresh) words.push_back("--force-new-group");
  if (a.plan.forgets) words.push_back("--forget-log");
  last_line_.clear();
  oom_kills_ = OomKills();
  ask_ms_ = 0;
  if (spawn_child(words, ParentDeathPolicy::kParent, node_)) {
    return step(supervise::Started{replica_});
  }
  step(supervise::NotStarted{replica_, failure(Status::kSystem, "cannot start a node", parts_.node,
                                               strerror(errno), "see the limits of this machine")});
}

void HostAgent::carry_out(const supervise::GiveUp& a) {
  if (!a.why) return fail(a.why.error());
  directories_.remove_host(setup::GroupDirectories::Removal::kNothing);
  done_ = true;
}

void HostAgent::on_command(const Json& command) {
  const std::string type = command.value("t", "");
  if (type == "group" && replica_ < 0) {
    if (auto p = prepare(command); !p) return fail(p.error());
    Json files = Json::array();
    for (const auto& file : setup::program_files(program_)) {
      files.push_back({{"path", file.path}, {"digest", file.digest}});
    }
    wire_.send({{"t", "ready"}, {"program", program_}, {"files", std::move(files)}});
  } else if (type == "start" && replica_ >= 0 && !started_) {
    started_ = true;
    step(supervise::Start{});
  } else if (type == "stop") {
    stop(SIGINT);
  } else if (type == "kill") {
    supervisor_ ? step(supervise::Kill{}) : stop(SIGINT);
  } else if (type == "end") {
    wire_.send(
        {{"t", "stopped"}, {"groups", end_agents(command.value("dir", ""), command.at("name"))}});
    done_ = true;
  }
}

// SIGINT: the whole group ends.  SIGTERM: this host's replica ends, and another takes its clients.
void HostAgent::stop(int signal) {
  supervisor_ ? step(supervise::Stop{nullptr, signal}) : carry_out(supervise::GiveUp{});
}

void HostAgent::on_disconnect() {
  connected_ = false;
  if (!started_) return stop(SIGINT);
  // AGENT-1.  The remote shell must not wait for this process (AGENT-3).
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {0, 1, 2}) dup2(nothing, fd);
  close(nothing);
  (void)!write(release_pipe_, "", 1);
}

std::string HostAgent::replica_home() const {
  return fs::path(directories_.host_dir()).parent_path().string() + "/r" + std::to_string(replica_);
}

std::string HostAgent::drained_mark() const { return replica_home() + "/" + setup::kDrainedMark; }

void HostAgent::on_node_end(int status) {
  lines_.read_from(node_.out,
                   [this](const std::string& line) { last_line_ = setup::without_time(line); });
  if (node_.out >= 0) close(node_.out);
  node_.out = node_.pid = -1;
  serves_ = false;
  last_state_.clear();
  wait_for_left_processes(
      [this] { checkpoint::end_orphans(fs::path(directories_.host_dir()).parent_path()); });
  const bool drained = access(drained_mark().c_str(), F_OK) == 0;
  step(supervise::NodeEnded{replica_, status, drained, last_line_, oom_kills_.since()});
}

// The group continues without this host: removes all files that the next start does not need.
void HostAgent::carry_out(const supervise::Leave& a) {
  const int status = a.wait;
  const std::string home = replica_home();
  const Json state = Json::parse(text_of_file(home + "/status.json"), nullptr, false);
  const std::uint64_t reported = control::number_in(state, "server_exit", control::kAny);
  const int server_exit = reported <= UINT8_MAX ? static_cast<int>(reported) : -1;
  const std::string server_end = control::text_in(state, "server_end");
  const bool failed = supervise::server_end_status(supervise::exit_reason_of(server_end),
                                                   std::max(server_exit, 0)) != 0;
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == std::max(server_exit, 0) &&
                    WEXITSTATUS(status) < 128 && !failed;
  std::error_code ignored;
  fs::remove(drained_mark(), ignored);  // the replica cannot be resumed any more
  using Removal = setup::GroupDirectories::Removal;
  directories_.remove_host(file_.durability != "memory" ? Removal::kMemory
                           : well                       ? Removal::kAll
                                                        : Removal::kAllButLogs);
  wire_.send({{"t", "ended"},
              {"wait", status},
              {"server_exit", server_exit},
              {"server_end", server_end},
              {"refused", control::text_in(state, "server_refused")},
              {"said", last_line_},
              {"log", well ? "" : home + "/node.log"}});
  done_ = true;
}

void HostAgent::carry_out(const supervise::StaysDrained& a) {
  if (!a.why.empty()) (void)write_file(drained_mark(), "");
  wire_.send({{"t", "drained"}, {"why", a.why}});
}

void HostAgent::carry_out(const supervise::BroughtBack&) { wire_.send({{"t", "resumed"}}); }

Json HostAgent::answer(const Json& request) {
  const auto asked = [&request](const char* key, const Json& value) {
    return request.is_object() && request.contains(key) && request[key] == value;
  };
  if (asked("do", "state") && supervisor_) {
    const auto& replica = supervisor_->replicas().front();
    return {{"ok", true}, {"message", replica.resume_failure}, {"node", replica.has_node()}};
  }
  if (!asked("do", "resume")) {
    return answer_of({"unknown", "this version of the agent does not know that request"});
  }
  step(supervise::Resume{replica_, asked("forget", true)});
  return answer_;
}

void HostAgent::on_signals() {
  signalfd_siginfo info{};
  while (read(signals_, &info, sizeof info) == sizeof info) {
    const auto signal = static_cast<int>(info.ssi_signo);
    if (signal != SIGCHLD && !done_) stop(signal);
  }
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid == node_.pid) return on_node_end(status);
  }
}

// Reports changes of the node's state to crane-run.
void HostAgent::ask_node_state() {
  ask_ms_ = now_ms() + (serves_ ? kAskServingMs : kAskEveryMs);
  if (!connected_ && serves_) return;
  std::string answer;
  if (ask_node(replica_home() + "/control.sock", R"({"do":"status"})", kAskMs, answer) !=
      Reply::kAnswer)
    return;
  const Json all = Json::parse(answer, nullptr, false);
  if (!all.is_object()) return;
  const Json state{{"t", "status"},
                   {"role", control::text_in(all, "role")},
                   {"view", control::number_in(all, "view")},
                   {"server", control::number_in(all, "server_pid") > 0},
                   {"ports", control::list_in(all, "ports")}};
  if (state.dump() == last_state_) return;
  last_state_ = state.dump();
  serves_ = state["server"].get<bool>() && !state["ports"].empty();
  if (serves_) step(supervise::Reported{replica_, supervise::Report::kServes});
  wire_.send(state);
}

int HostAgent::timeout() const {
  std::int64_t next = supervise::Supervisor::kNever;
  if (supervisor_) next = supervisor_->deadline_ms();
  if (node_.pid >= 0) next = std::min(next, ask_ms_);
  if (agent_socket_.pause_ms() >= 0) next = std::min(next, now_ms() + agent_socket_.pause_ms());
  if (next == supervise::Supervisor::kNever) return -1;
  return static_cast<int>(std::max<std::int64_t>(0, next - now_ms()));
}

int HostAgent::run() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, s);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
  if (auto p = setup::find_programs(parts_); !p) fail(p.error());
  if (!done_) {
    wire_.send({{"t", "hello"},
                {"protocol", kAgentProtocol},
                {"versions", setup::agreed_versions_text()}});
  }
  while (!done_) {
    pollfd fds[] = {{connected_ ? STDIN_FILENO : -1, POLLIN, 0},
                    {signals_, POLLIN, 0},
                    {node_.out, POLLIN, 0},
                    {wire_.waiting() ? STDOUT_FILENO : -1, POLLOUT, 0},
                    {agent_socket_.fd(), POLLIN, 0}};
    poll(fds, std::size(fds), timeout());
    if (fds[3].revents != 0) wire_.flush();
    if (fds[2].revents != 0) {
      const bool more = lines_.read_from(node_.out, [this](const std::string& line) {
        last_line_ = setup::without_time(line);  // crane-run adds its own
        wire_.send({{"t", "line"}, {"text", last_line_}}, true);
      });
      if (!more) {
        close(node_.out);
        node_.out = -1;
      }
    }
    if (fds[0].revents != 0) {
      const bool more = commands_.read_from(STDIN_FILENO, [this](const std::string& line) {
        const auto command = control::parse(control::Channel::kRunToAgent, line);
        if (command.message && !done_) on_command(command.message->plain("t"));
        if (!command.message) {
          wire_.send({{"t", "line"}, {"text", "the agent refuses: " + command.refusal.message}});
        }
      });
      if (!more && !done_) on_disconnect();
    }
    if (!done_ && fds[1].revents != 0) on_signals();
    if (!done_ && fds[4].revents != 0) {
      agent_socket_.answer([this](const Json& request) { return answer(request); });
    }
    if (!done_) step(supervise::Tick{});
    if (!done_ && node_.pid >= 0 && now_ms() >= ask_ms_) ask_node_state();
  }
  wire_.finish();
  return status_;
}

}  // namespace

// AGENT-3: sshd keeps a connection until the process that it started has ended, even if all
// descriptors are closed.
int run_host_agent() {
  int release_pipe[2] = {-1, -1};
  const pid_t agent = pipe2(release_pipe, O_CLOEXEC) == 0 ? fork() : -1;
  if (agent <= 0) return HostAgent(release_pipe[1]).run();
  close(release_pipe[1]);
  char byte;
  ssize_t got;
  while ((got = read(release_pipe[0], &byte, 1)) < 0 && errno == EINTR) {
  }
  if (got > 0) return 0;
  int status = 0;
  waitpid(agent, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace crane::launcher
