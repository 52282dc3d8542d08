// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/run/hosts.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "dmt/base/ipv4_prefix.h"
#include "dmt/base/join.h"
#include "runtime/launcher/agent/host_agent.h"
#include "runtime/launcher/run/end_signals.h"
#include "runtime/setup/command_line.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/program.h"
#include "runtime/setup/secret.h"
#include "runtime/setup/version.h"
#include "runtime/supervise/ends.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;
using supervise::how_ended;

constexpr int kGreetingMs = 30'000;  // for the remote shell and the agent's first message
constexpr int kPreparingMs = 30'000;
constexpr int kStartingMs = 60'000;   // until all replicas run and one leads
constexpr int kServerEndMs = 10'000;  // for the other replicas, after one server ended
constexpr int kStoppingMs = 40'000;   // longer than an agent needs
constexpr int kCrane = 64;            // the lowest of a node's own statuses

std::string own_path() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).string();
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// The command that stops this group by hand.
std::string stop_command(const Options& o) {
  std::string list;
  for (const auto& host : o.remote.hosts) list += (list.empty() ? "" : ",") + host.name;
  return "crane-run --hosts " + list + " --name " + o.name +
         (o.dir.empty() ? "" : " --dir " + o.dir) +
         (o.remote.rsh == HostsOptions().rsh ? "" : " --rsh " + quoted(o.remote.rsh)) +
         (o.remote.remote_path.empty() ? "" : " --remote-path " + o.remote.remote_path) + " --stop";
}

bool is_noteworthy(const std::string& line) {
  if (line.empty() || line[0] != '[') return !line.empty();
  for (const char* level : {"[warning]", "[error]", "[critical]"}) {
    if (line.find(level) != std::string::npos) return true;
  }
  return false;
}

// Whether the remote shell reached the host, but found no crane-run there: by the exit status of a
// shell, or by the message of a program that runs the words without one.  The message must name
// `path`, because files may be missing on this machine, too (ssh -F FILE).
bool lacks_crane(int status, const std::string& cause, const std::string& path) {
  const auto names = [&cause](const std::string& part) {
    return cause.find(part) != std::string::npos;
  };
  return WIFEXITED(status) && (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 126 ||
                               names("--host-agent") || (names("No such file") && names(path)));
}

// The status for a node that ended, if it is not the server's: the node's own, or that of a check
// before the node ran.
Status status_of_end(int wait) {
  if (WIFSIGNALED(wait)) return Status::kNodeFailed;
  const int status = WEXITSTATUS(wait);
  for (const Status one : {Status::kDataInUse, Status::kHttpFiles}) {
    if (status == static_cast<int>(one)) return one;
  }
  if (status >= static_cast<int>(Status::kUsage) && status <= static_cast<int>(Status::kSecret)) {
    return static_cast<Status>(status);
  }
  return status >= kCrane ? supervise::end_of(status).status : Status::kReplicaStopped;
}

}  // namespace

setup::GroupFile group_file_of(const Options& o) {
  setup::GroupFile f;
  static_cast<setup::NodeOptions&>(f) = o;
  f.name = o.name;
  f.secret_file = "/secret";  // each agent replaces it
  f.state_dir = o.dir;
  f.fabric = o.remote.fabric;
  if (o.ring_mb != 0) f.ring_mb = o.ring_mb;
  f.forward = o.remote.on_follower == "forward";
  f.virtual_ip = o.remote.virtual_ip;
  f.http = o.http;
  f.interface = o.remote.interface;
  for (const auto& h : o.remote.hosts) f.replicas.push_back({h.address, h.port, h.address, -1});
  f.command = o.program;
  f.profile = o.profile;
  f.mode = o.mode;
  f.detach = o.detach;
  f.soft_barriers = o.soft_barriers;
  f.binds = o.binds;
  f.shared_binds = o.shared_binds;
  f.data = o.data;
  f.publish = o.publish;
  return f;
}

Hosts::~Hosts() {
  for (const Host& host : hosts_) {
    for (const int fd : {host.shell.in, host.shell.out, host.shell.err}) {
      if (fd >= 0) close(fd);
    }
  }
  if (signals_ >= 0) close(signals_);
}

// --- start --------------------------------------------------------------------------------------

Outcome Hosts::open() {
  std::vector<setup::HostWord> words = options_.remote.hosts;
  Options resolved = options_;
  if (!options_.remote.stop) {
    if (auto p = setup::resolve_hosts(resolved.remote.hosts); !p) return p;
    file_ = setup::to_toml(group_file_of(resolved));
    setup::GroupFile again;
    if (auto p = setup::parse_group_file(file_, "the command line", again); !p) return p;
    secret_ = setup::random_secret_text();
    const std::string& path = options_.remote.secret_file;
    if (!path.empty()) {
      if (auto p = setup::read_secret_text(path, secret_); !p) return p;
    }
  }
  sigset_t set = end_signals();
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  signal(SIGPIPE, SIG_IGN);
  for (const auto& word : words) {
    hosts_.emplace_back();
    hosts_.back().number = static_cast<int>(hosts_.size()) - 1;
    hosts_.back().name = word.name;
  }
  for (Host& host : hosts_) {
    if (auto p = connect(host); !p) return p;
  }
  return Done{};
}

Outcome Hosts::connect(Host& host) {
  path_ = options_.remote.remote_path.empty() ? own_path() : options_.remote.remote_path;
  std::vector<std::string> words = setup::split_words(options_.remote.rsh);
  // The remote shell may pass these words to a shell or run them directly.  Plain words have the
  // same meaning in both cases.
  const bool plain = path_.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-@%") ==
                     std::string::npos;
  if (words.empty() || !plain) {
    return failure(Status::kUsage, words.empty() ? "--rsh" : "--remote-path",
                   words.empty() ? options_.remote.rsh : path_,
                   "a remote shell cannot run this command",
                   "use letters, digits and _./+-@% only");
  }
  std::string shell;
  if (auto p = setup::find_program(words[0], shell); !p) {
    return failure(status_of(p), "cannot start the remote shell", words[0],
                   "there is no such program",
                   "install it (ssh: the package openssh-client), or name another with --rsh");
  }
  words[0] = shell;
  words.insert(words.end(), {host.name, path_, "--host-agent"});
  if (spawn_child(words, ParentDeathPolicy::kPipes, host.shell)) return Done{};
  return failure(Status::kSystem, "cannot start the remote shell", words[0], strerror(errno),
                 "see the limits of this machine");
}

int Hosts::run() {
  if (auto p = open(); !p) {
    print_message(p.error().text);
    for (Host& host : hosts_) {
      if (host.shell.pid > 0) kill(host.shell.pid, SIGTERM);
    }
    return p.error().exit_status;
  }
  if (!options_.remote.stop) {
    const std::string names = joined(hosts_, &Host::name);
    print_message("starting one replica of " + options_.program[0] + " on each of " + names +
                  " (group " + options_.name + ", fabric " + options_.remote.fabric +
                  ", durability " + options_.durability + ")");
  }
  enter(Phase::kGreeting);
  serve();
  drop_context();
  if (!problem_) print_message(problem_.error().text, setup::Level::kError);
  log_leftovers();
  return problem_.ok() ? status_ : problem_.error().exit_status;
}

// --- the loop -----------------------------------------------------------------------------------

// Returns when no remote shell is left.
void Hosts::serve() {
  while (connected() > 0) {
    std::vector<pollfd> fds{{signals_, POLLIN, 0}};
    for (const Host& host : hosts_) {
      fds.push_back({host.shell.out, POLLIN, 0});
      fds.push_back({host.shell.err, POLLIN, 0});
    }
    int timeout = -1;
    if (deadline_ms_ != 0) {
      timeout = static_cast<int>(std::max<std::int64_t>(0, deadline_ms_ - now_ms()));
    }
    (void)poll(fds.data(), fds.size(), timeout);
    for (Host& host : hosts_) {
      if (host.shell.out >= 0 &&
          !host.out.read_from(host.shell.out, [&](const auto& line) { on_line(host, line); })) {
        close(host.shell.out);
        host.shell.out = -1;
      }
      if (host.shell.err >= 0 && !host.err.read_from(host.shell.err, [&](const auto& line) {
            on_error_line(host, line);
          })) {
        close(host.shell.err);
        host.shell.err = -1;
      }
    }
    if (fds[0].revents != 0) on_signals();
    advance();
    // Input that has arrived counts before the deadline; later input does not postpone it.
    if (deadline_ms_ != 0 && now_ms() >= deadline_ms_) on_deadline();
  }
}

void Hosts::on_signals() {
  signalfd_siginfo info{};
  while (read(signals_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    if (phase_ == Phase::kStopping && !killed_) {
      killed_ = true;  // second request
      for (Host& host : hosts_) send(host, {{"t", "kill"}});
    } else {
      stop(why_it_ends(static_cast<int>(info.ssi_signo)));
    }
  }
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (Host& host : hosts_) {
      if (host.shell.pid == pid) on_shell_end(host, status);
    }
  }
}

void Hosts::on_deadline() {
  deadline_ms_ = 0;
  if (phase_ == Phase::kEnding) return stop("the other replicas did not end");
  for (Host& host : hosts_) {
    if (host.shell.pid < 0) continue;
    if (phase_ == Phase::kGreeting || phase_ == Phase::kStopping) kill(host.shell.pid, SIGKILL);
  }
  if (phase_ == Phase::kPreparing || phase_ == Phase::kStarting) {
    std::vector<std::string> late;
    for (const Host& host : hosts_) {
      const bool runs =
          phase_ == Phase::kStarting ? host.server || host.drained : host.state == State::kReady;
      if (!runs) late.push_back(host.name);
    }
    end_with(failure(Status::kNodeFailed, "the group did not start", options_.name,
                     late.empty() ? "no replica leads" : "not ready in time: " + joined(late),
                     "see whether the hosts reach each other at the addresses of --hosts, and the "
                     "logs on them"));
  }
}

void Hosts::send(Host& host, const Json& message) {
  const std::string line = message.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  // An agent that does not accept the line has ended, or hangs until the deadline finds it.
  if (host.shell.in >= 0) (void)!write(host.shell.in, line.data(), line.size());
}

void Hosts::enter(Phase phase) {
  phase_ = phase;
  const int limit = phase == Phase::kGreeting    ? kGreetingMs
                    : phase == Phase::kPreparing ? kPreparingMs
                    : phase == Phase::kStarting  ? kStartingMs
                    : phase == Phase::kStopping  ? kStoppingMs
                    : phase == Phase::kEnding    ? kServerEndMs
                                                 : 0;
  deadline_ms_ = limit == 0 ? 0 : now_ms() + limit + (options_.remote.stop ? kStoppingMs : 0);
}

// Whether every host without a problem has reached at least `state`.
bool Hosts::all_are(State state) const {
  return std::all_of(hosts_.begin(), hosts_.end(),
                     [state](const Host& host) { return host.state >= state || !host.problem; });
}

void Hosts::advance() {
  if (phase_ == Phase::kStopping || options_.remote.stop) return;
  const auto bad =
      std::find_if(hosts_.begin(), hosts_.end(), [](const Host& host) { return !host.problem; });
  const bool asking = phase_ == Phase::kGreeting || phase_ == Phase::kPreparing;
  if (!asking || !all_are(phase_ == Phase::kGreeting ? State::kGreeted : State::kReady)) return;
  if (phase_ == Phase::kPreparing && bad == hosts_.end()) check_servers();
  if (phase_ == Phase::kStopping) return;
  if (bad != hosts_.end()) {  // report every host's problem; the first one's status counts
    for (auto other = bad + 1; other != hosts_.end(); ++other) {
      if (!other->problem.ok()) print_message(other->problem.error().text, setup::Level::kWarning);
    }
    return end_with(bad->problem.error());
  }
  const bool greeted = phase_ == Phase::kGreeting;
  for (Host& host : hosts_) {
    if (greeted) {
      send(host, {{"t", "group"}, {"file", file_}, {"secret", secret_}, {"replica", host.number}});
    } else {
      host.state = State::kRuns;
      send(host, {{"t", "start"}});
    }
  }
  if (!greeted) keep_context();
  enter(greeted ? Phase::kPreparing : Phase::kStarting);
}

// All hosts must have the same server, because replicas would differ otherwise.
void Hosts::check_servers() {
  const Host& first = hosts_[0];
  for (const Host& host : hosts_) {
    const std::string how = host.program != first.program
                                ? host.program + " is " + first.program + " on "
                                : setup::difference_of(first.files, host.files);
    if (how.empty()) continue;
    return end_with(failure(Status::kHostDiffers, "the server differs", host.name, how + first.name,
                            "install the same package on all hosts"));
  }
}

// --- messages of hosts --------------------------------------------------------------------------

void Hosts::on_line(Host& host, const std::string& line) {
  const Json message = Json::parse(line, nullptr, false);
  // A login shell may print its own lines first.
  if (!message.is_object() || !message.contains("t")) return detail(host.name + ": " + line);
  try {
    const std::string type = message.at("t");
    if (type == "hello") {
      on_hello(host, message);
    } else if (type == "ready") {
      host.program = message.at("program");
      host.files.clear();
      for (const Json& file : message.at("files")) {
        host.files.push_back({file.at("path"), file.at("digest")});
      }
      host.state = State::kReady;
    } else if (type == "problem") {
      const int status = message.at("status");
      host.problem = failure(status == 0 ? Status::kSystem : static_cast<Status>(status),
                             host.name + ": " + message.at("text").get<std::string>());
      if (phase_ == Phase::kStarting) end_with(host.problem.error());
    } else if (type == "status") {
      on_status(host, message);
    } else if (type == "line") {
      on_agent_line(host, message.at("text"));
    } else if (type == "drained") {
      on_drained(host, message);
    } else if (type == "resumed") {
      on_resumed(host);
    } else if (type == "ended") {
      on_ended(host, message);
    } else if (type == "stopped") {
      host.state = State::kEnded;
      print_message(host.name + (message.at("groups") == 0
                                     ? ": no replica of " + options_.name + " runs here"
                                     : ": stopped"));
    }
  } catch (const Json::exception& malformed) {
    detail(host.name + ": " + line + ": " + malformed.what());
  }
}

void Hosts::on_error_line(Host& host, const std::string& line) {
  const std::string text = setup::without_time(line);
  if (!text.empty()) host.last_error_line = text;
  detail(host.name + ": " + text);
}

void Hosts::on_hello(Host& host, const Json& message) {
  const std::string here = setup::agreed_versions_text();
  const std::string there = message.value("versions", "a build without the table of versions");
  const bool same = message.value("protocol", 0) == kAgentProtocol && there == here;
  if (options_.remote.stop) {
    return send(host, {{"t", "end"}, {"name", options_.name}, {"dir", options_.dir}});
  }
  if (same) {
    host.state = State::kGreeted;
    return;
  }
  host.problem = failure(Status::kHostDiffers, "another version of Crane", host.name,
                         "it is " + there + "; this one is " + here,
                         "install the same build on all hosts, or name it with --remote-path");
}

void Hosts::on_agent_line(Host& host, const std::string& line) {
  const bool always = is_noteworthy(line);
  const std::string text = place_of(host) + ": " + line;
  always ? print_message(text) : detail(text);
}

void Hosts::on_status(Host& host, const Json& message) {
  host.role = message.at("role");
  host.view = message.at("view");
  host.server = message.at("server");
  host.ports = message.at("ports").get<std::vector<std::pair<int, int>>>();
  if (host.role == "leader" && host.view > shown_view_) {
    shown_view_ = host.view;
    print_message(place_of(host) + " leads (view " + std::to_string(host.view) + ")");
  }
  look_whether_all_run();
}

void Hosts::look_whether_all_run() {
  show_ports();
  const bool all =
      std::all_of(hosts_.begin(), hosts_.end(), [](auto& h) { return h.server || h.drained; });
  if (phase_ == Phase::kStarting && all && shown_view_ > 0) {
    enter(Phase::kServing);
    print_message("all replicas run");
  }
}

// Reports where clients may connect, once every host that runs has opened the port.
void Hosts::show_ports() {
  std::vector<std::pair<int, int>> known;
  for (const Host& host : hosts_) known.insert(known.end(), host.ports.begin(), host.ports.end());
  for (const auto& port : known) {
    const auto open = [&](const Host& host) {
      return host.state != State::kRuns || host.drained ||
             std::find(host.ports.begin(), host.ports.end(), port) != host.ports.end();
    };
    const bool shown =
        std::find(shown_ports_.begin(), shown_ports_.end(), port.first) != shown_ports_.end();
    if (shown || !std::all_of(hosts_.begin(), hosts_.end(), open)) continue;
    shown_ports_.push_back(port.first);
    const auto moves = parse_ipv4_prefix(options_.remote.virtual_ip);
    print_message(
        "listening on port " + std::to_string(port.second) + " of " +
        (moves ? moves->address + " (where the leader is), " : "") + joined(hosts_, &Host::name) +
        (port.first == port.second ? std::string()
                                   : " for the server's port " + std::to_string(port.first)));
  }
}

// --- ends ---------------------------------------------------------------------------------------

void Hosts::on_ended(Host& host, const Json& message) {
  const int wait = message.at("wait");
  host.state = State::kEnded;
  host.server_exit = message.at("server_exit");
  host.exit_reason = supervise::exit_reason_of(message.at("server_end"));
  host.refused = message.at("refused");
  host.log = message.at("log");
  host.server = host.drained = false;
  const std::string last_line = message.at("said");
  const std::string cause =
      how_ended(wait) + (WIFEXITED(wait) && !last_line.empty() ? " (" + last_line + ")" : "");
  if (phase_ == Phase::kStopping) {
    if (!host.log.empty() && !killed_) {
      print_message(place_of(host) + " " + cause + "; its log: " + host.log);
    }
    return;
  }
  if (host.server_exit >= 0) return on_server_end();
  host.problem = failure(status_of_end(wait), place_of(host), "its node is lost", cause,
                         host.log.empty() ? "it recovers when the group is started again"
                                          : "its log there: " + host.log);
  decide_after_loss(host);
}

// After the server of one replica ended: the others end at the same point of its history.
void Hosts::on_server_end() {
  if (phase_ != Phase::kEnding) enter(Phase::kEnding);
  const Host* last = nullptr;
  for (const Host& host : hosts_) {
    if (host.server_exit >= 0) last = &host;
  }
  if (maybe_running() > count(State::kLost)) return;
  for (const Host& host : hosts_) {
    if (host.server_exit >= 0 && host.server_exit != last->server_exit) {
      print_message("the servers ended differently: on " + host.name + " with " +
                    std::to_string(host.server_exit));
    }
  }
  status_ = supervise::server_end_status(last->exit_reason, last->server_exit);
  if (!last->refused.empty()) print_message(last->refused);
  print_message(supervise::server_end_text(last->exit_reason, last->server_exit) +
                (last->log.empty() ? "" : "; its log: " + last->log + " on " + last->name));
  stop(nullptr);
}

// The remote shell ended: after its agent, because it did not reach the host or found no Crane, or
// because the connection broke.
void Hosts::on_shell_end(Host& host, int status) {
  for (const int fd : {host.shell.out, host.shell.err}) {  // read its last output
    if (fd < 0) continue;
    Lines& lines = fd == host.shell.out ? host.out : host.err;
    lines.read_from(fd, [&](const auto& line) {
      fd == host.shell.out ? on_line(host, line) : on_error_line(host, line);
    });
  }
  host.shell.pid = -1;
  for (int* fd : {&host.shell.in, &host.shell.out, &host.shell.err}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
  if (host.state == State::kEnded || !host.problem) return;
  const bool quiet = host.last_error_line.empty() || WIFSIGNALED(status);
  const std::string cause = quiet ? "the remote shell " + how_ended(status) : host.last_error_line;
  if (host.state == State::kConnecting && lacks_crane(status, cause, path_)) {
    host.problem =
        failure(Status::kHostDiffers, "no Crane of this version", host.name, cause,
                "install the same build there, or name its crane-run with --remote-path");
  } else if (host.state < State::kRuns) {
    host.problem =
        failure(Status::kHost, "cannot reach the host", host.name, cause,
                "see whether its name is right, it is up, and lets you in: " + options_.remote.rsh +
                    " " + host.name + " true");
  } else {
    host.state = State::kLost;
    host.drained = false;  // an operator may resume it, and no message would arrive
    if (phase_ == Phase::kStopping) return;
    host.problem = failure(Status::kHost, "the connection to the host is lost", host.name, cause,
                           "its replica may continue without it");
    decide_after_loss(host);
  }
  if (options_.remote.stop) {
    print_message(host.problem.error().text, setup::Level::kWarning);
    if (status_ == 0) status_ = host.problem.error().exit_status;
  }
}

void Hosts::stop(const char* why) {
  if (phase_ == Phase::kStopping) return;
  enter(Phase::kStopping);
  if (why != nullptr) print_message(std::string(why) + ", stopping");
  for (Host& host : hosts_) {
    // An agent that has not sent anything yet may never read this.
    if (host.state == State::kConnecting && host.shell.pid > 0) kill(host.shell.pid, SIGTERM);
    send(host, {{"t", "stop"}});
  }
}

void Hosts::end_with(const Error& problem) {
  if (problem_.ok()) problem_ = problem;
  stop(nullptr);
}

// Replicas that did not receive the request to stop continue (AGENT-1): tell the user.
void Hosts::log_leftovers() {
  std::vector<std::string> lost;
  for (const Host& host : hosts_) {
    if (host.state == State::kLost) lost.push_back(host.name);
  }
  const std::string names = joined(lost);
  if (names.empty()) return;
  const Error left =
      failure(Status::kHost, "replicas may still run", names, "the connection to them is lost",
              "stop them with " + stop_command(options_));
  print_message(left.text);
  if (problem_.ok()) status_ = left.exit_status;
}

}  // namespace crane::launcher
