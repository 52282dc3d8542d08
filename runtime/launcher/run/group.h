// SPDX-License-Identifier: Apache-2.0
#pragma once
// The running group as crane-run sees it: N node processes, each connected by a control channel.
// runtime/supervise decides what to do with the nodes.  Group turns what happened into events for
// it, and carries out the actions that it returns.
//
// Control channel: SOCK_SEQPACKET, the node's end is its descriptor 3; one JSON object per message.
// runtime/control/requests.cc lists the messages of both directions.
//
// When crane-run dies, its nodes continue.  The next crane-run takes them over: it connects to each
// node (take_over.h), and that connection becomes the channel (group_take_over.cc).
//
// INVARIANT ADOPT-1  crane-run opens a port again only after every node that it took over has
//                        handed its listening sockets over.  A port that cannot be opened never
//                        ends a group that has served.
//
// Threads / Processes: one thread. crane-run is the subreaper of all processes that its nodes leave
// behind, so run() returns only when no process of the group is left.  Nodes that it took over are
// not its children: pidfds report their ends.

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dmt/base/oom_kills.h"
#include "runtime/control/outbox.h"
#include "runtime/control/schema.h"
#include "runtime/launcher/agent/agent_socket.h"
#include "runtime/launcher/lasting.h"
#include "runtime/launcher/node_setup.h"
#include "runtime/launcher/options.h"
#include "runtime/launcher/run/listeners.h"
#include "runtime/launcher/run/server_output.h"
#include "runtime/launcher/run/unsaved.h"
#include "runtime/launcher/take_over.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/profile.h"
#include "runtime/setup/progress_line.h"
#include "runtime/supervise/supervisor.h"

namespace crane::launcher {

using setup::GroupDirectories;
using setup::Profile;
using setup::ProgramPaths;

// Blocks SIGCHLD and the signals that end a group (end_signals.h) until the group's loop reads
// them.  A crane-run that is stopped while it looks for its nodes therefore still stops them
// cleanly.
void hold_signals();

class Group {
 public:
  Group(const Options& options, const ProgramPaths& parts, const Profile& profile,
        const std::string& program, GroupDirectories& directories, const GroupRecord& record,
        const Lasting& lasting);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Calls `up` once, from the group's loop, when the group is up: all replicas run, one of them
  // leads, and the server listens.  Call this before run() or take_over().
  void when_up(std::function<void()> up) { when_up_ = std::move(up); }
  // Starts the nodes and serves until the group ends. Returns crane-run's exit status.
  int run();
  // Like run(), for a group that already runs.  `ends`: takes it over only to end it.
  int take_over(bool ends);

 private:
  // The processes of a replica; `supervisor_` holds the rest of its state.
  struct Replica {
    int number = 0;
    pid_t node = -1;
    int pidfd = -1;      // of a node that is not a child of this process
    OomKills oom_kills;  // since its node began
    pid_t server = -1;
    int channel = -1;
    control::Outbox outbox;   // messages to its node, which may be stopped
    bool introduces = false;  // the node answered, but has yet to hand over all its sockets
    std::vector<control::Message> pending_listens;  // requests that wait for sockets (ADOPT-1)
    std::int64_t last_attempt_ms = 0;               // time of the last attempt at a silent node
    pid_t recorded_pid = -1;                        // node's pid, from the previous crane-run
  };

  void step(supervise::Event event);
  // group_actions.cc
  void carry_out(const supervise::StartNode& a);
  void carry_out(const supervise::EndNode& a);
  void carry_out(const supervise::SignalServers& a);
  void carry_out(const supervise::AskCheckpoint& a);
  void carry_out(const supervise::AskMember& a);
  void carry_out(const supervise::LookForCheckpoint& a);
  void carry_out(const supervise::PrintMessage& a);
  void carry_out(const supervise::Detail& a);
  void carry_out(const supervise::WriteNotice& a);
  void carry_out(const supervise::RemoveNotice& a);
  void carry_out(const supervise::KeepLogs& a);
  void carry_out(const supervise::Stopping& a);
  void carry_out(const supervise::AnalysisReleased& a);
  void carry_out(const supervise::Answer& a);
  template <typename Other>
  void carry_out(const Other&) {}  // actions of agents only
  Outcome start_node(Replica& replica, const supervise::Plan& plan);
  std::string configuration(int number, const supervise::Plan& plan) const;
  void kill_node(const Replica& replica, int signal);
  // group_take_over.cc
  std::vector<supervise::Found> find_nodes();
  bool adopt(Replica& replica);
  void look_for_adoption();
  void look_at_adopted();
  bool is_silent(const Replica& replica) const;
  bool has_silent() const;
  bool waits_for_sockets() const;
  void answer_listens();
  nlohmann::json answer(const nlohmann::json& request);
  void serve();
  void look_whether_up();
  void show_output();
  bool any_starts() const;
  void show_starts();
  void on_signals();
  void open_signals();
  int conclude();
  void finish_output();
  void remove_group();
  void report_kept_data();
  // group_channel.cc
  void read_messages(Replica& replica);
  void open_channel(Replica& replica, int channel);
  void close_channel(Replica& replica);
  void send(Replica& replica, const nlohmann::json& message, int passed = -1);
  void flush(Replica& replica);
  void on_fd(Replica& replica, const std::string& json, int fd);
  void on_message(Replica& replica, const std::string& json);
  void on_listen(Replica& replica, const control::Message& asked);
  void refuse_to_listen(Replica& replica, const Place& place, bool for_bind, const Error& why,
                        int error);
  void keep_inside(Replica& replica, const Place& place);
  void reap();
  void on_node_end(Replica& replica, int status);
  void write_state();
  std::string home_of(int replica) const;
  Replica& at(int replica) { return replicas_[static_cast<std::size_t>(replica)]; }
  void end_analysis() const;
  bool has_report() const;
  std::string report() const { return options_.analysis_dir + "/report.txt"; }

  const Options& options_;
  const ProgramPaths& parts_;
  const Profile& profile_;
  const std::string program_;
  const GroupRecord& record_;
  GroupDirectories& directories_;
  const Lasting& lasting_;
  Unsaved unsaved_;
  ServerOutput output_;
  Listeners listeners_;
  AgentSocket agent_socket_;
  std::vector<Replica> replicas_;
  supervise::Supervisor supervisor_;
  std::deque<supervise::Event> events_;
  nlohmann::json answer_;  // `supervisor_`'s answer to crane-ctl
  int signals_ = -1;       // signalfd
  std::function<void()> when_up_;
  // How far the node of `start_` is, which does not answer requests yet.
  std::string start_;
  std::optional<setup::ProgressWriter> start_line_;
  bool listens_ = false;  // the server listens; clients reach it, or a message says why not
  bool steps_ = false;
  bool took_over_ = false;  // took living nodes over: they may hold sockets that clients use
};

}  // namespace crane::launcher
