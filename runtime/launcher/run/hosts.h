// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group of several hosts as crane-run sees it: an agent (host_agent.h) on each host, connected by
// a remote shell.  crane-run checks all hosts before it starts anything on one of them.  A started
// replica ends only on request (AGENT-1), so the service survives the loss of crane-run.
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

// The group's file as crane-run sends it; each agent fills in its own paths.
setup::GroupFile group_file_of(const Options& options);

class Hosts {
 public:
  explicit Hosts(const Options& options) : options_(options) {}
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  // Starts the group and supervises it until it ends; with --stop, stops it.  Returns crane-run's
  // exit status.
  int run();

 private:
  // kLost: the remote shell ended before the agent; the replica may continue.
  enum class State { kConnecting, kGreeted, kReady, kRuns, kEnded, kLost };
  enum class Phase { kGreeting, kPreparing, kStarting, kServing, kStopping, kEnding };
  struct Host {
    int number = 0;
    std::string name;
    Child shell;
    Lines out, err;
    std::string last_error_line;  // last error line of the remote shell
    State state = State::kConnecting;
    Outcome problem = Done{};
    std::string program;  // path of the server's program
    std::vector<setup::ProgramFile> files;
    std::string role, log;
    std::uint64_t view = 0;
    bool server = false;
    bool drained = false;                    // the agent waits and runs no node
    std::vector<std::pair<int, int>> ports;  // the server's port, the host's port
    int server_exit = -1;
    supervise::ExitReason exit_reason{};
    std::string refused;  // the request of the server that libcrane.so refused
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
  void on_agent_line(Host& host, const std::string& line);
  void on_ended(Host& host, const nlohmann::json& message);
  // hosts_left.cc
  static std::string place_of(const Host& host);  // for people
  void on_drained(Host& host, const nlohmann::json& message);
  void on_resumed(Host& host);
  int maybe_running() const;
  void keep_context();
  void drop_context() const;
  void on_shell_end(Host& host, int status);
  void on_server_end();
  void on_deadline();
  void advance();  // enters the next phase when all hosts are ready for it
  bool all_are(State state) const;
  void check_servers();
  void decide_after_loss(Host& host);
  void show_ports();
  void send(Host& host, const nlohmann::json& message);
  void enter(Phase phase);
  void stop(const char* why);
  void end_with(const Error& problem);
  void log_leftovers();
  int count(State state) const;
  int connected() const;

  const Options& options_;
  std::string file_, secret_;
  std::string path_;  // path of crane-run on the hosts
  std::vector<Host> hosts_;
  Phase phase_ = Phase::kGreeting;
  int signals_ = -1;
  bool killed_ = false;
  bool keeps_context_ = false;
  bool made_directory_ = false;  // for the context
  std::int64_t deadline_ms_ = 0;
  std::uint64_t shown_view_ = 0;
  std::vector<int> shown_ports_;
  int status_ = 0;
  Outcome problem_ = Done{};
};

}  // namespace crane::launcher
