// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group of several hosts as crane-run sees it: an agent (host_agent.h) on each, at the end of a
// remote shell.  All hosts are asked before anything starts on one of them; what starts afterwards
// ends only when it is told to (AGENT-1), so whoever loses crane-run loses no service.
//
// Threads / Processes: one thread; one child per host, the remote shell.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/launcher/child.h"
#include "runtime/launcher/options.h"
#include "runtime/setup/group_file.h"
#include "runtime/setup/program_files.h"
#include "runtime/supervise/ends.h"

namespace crane::launcher {

// The group's file, as it is sent; the agents put their own paths in.
setup::GroupFile group_file_of(const Options& options);

class Hosts {
 public:
  explicit Hosts(const Options& options) : options_(options) {}
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  // Starts the group and stays until it ends, or stops one.  Returns crane-run's exit status.
  int run();

 private:
  // kLost: the remote shell ended before the agent; its replica may go on.
  enum class State { kConnecting, kGreeted, kReady, kRuns, kEnded, kLost };
  enum class Phase { kGreeting, kPreparing, kStarting, kServing, kStopping, kEnding };
  struct Host {
    int number = 0;
    std::string name;
    Child shell;
    Lines out, err;
    std::string said;  // by the remote shell, last
    State state = State::kConnecting;
    Outcome problem = Done{};
    std::string program;  // of the server
    std::vector<setup::ProgramFile> files;
    std::string role, log;
    std::uint64_t view = 0;
    bool server = false, told = false;
    bool drained = false;                    // its agent waits, without a node
    std::vector<std::pair<int, int>> ports;  // the server's, the host's
    int server_exit = -1;
    supervise::ExitReason exit_reason{};
    std::string refused;  // by libcrane.so, what the server asked for
  };

  Outcome open();
  Outcome connect(Host& host);
  void serve();
  void on_signals();
  void on_line(Host& host, const std::string& line);
  void on_error_line(Host& host, const std::string& line);
  void on_hello(Host& host, const nlohmann::json& message);
  void on_status(Host& host, const nlohmann::json& message);
  void look_whether_all_run();
  void on_said(Host& host, const std::string& line);
  void on_ended(Host& host, const nlohmann::json& message);
  // hosts_left.cc
  static std::string place_of(const Host& host);  // for people
  void on_drained(Host& host, const nlohmann::json& message);
  void on_resumed(Host& host);
  int maybe_running() const;
  void on_shell_end(Host& host, int status);
  void on_server_end();
  void on_deadline();
  void advance();  // to the next phase, once all hosts are that far
  bool all_are(State state) const;
  void check_servers();
  void judge(Host& host);
  void show_ports();
  void send(Host& host, const nlohmann::json& message);
  void enter(Phase phase);
  void stop(const char* why);
  void end_with(const Error& problem);
  void say_what_is_left();
  int count(State state) const;
  int connected() const;

  const Options& options_;
  std::string file_, secret_;
  std::string path_;  // of crane-run on the hosts
  std::vector<Host> hosts_;
  Phase phase_ = Phase::kGreeting;
  int signals_ = -1;
  bool killed_ = false;
  std::int64_t deadline_ms_ = 0;
  std::uint64_t shown_view_ = 0;
  std::vector<int> shown_ports_;
  int status_ = 0;
  Outcome problem_ = Done{};
};

}  // namespace crane::launcher
