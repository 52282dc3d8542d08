// SPDX-License-Identifier: Apache-2.0
#pragma once
// The running group as crane-run sees it: N node processes, each at the end of a control channel.
//
// Control channel: SOCK_SEQPACKET, the node's end is its descriptor 3; one JSON object per message.
//   node -> run   {"t":"listen","port":80,"addr":"0.0.0.0","backlog":n}
//                 {"t":"role","role":"leader","view":3}      {"t":"server","pid":p}
//                 {"t":"ready"} {"t":"exit","status":n,"reason":"..."}
//                 {"t":"fatal","code":n,"message":"..."}      code: runtime/setup/exit_status.h
//                 {"t":"members","members":[{"replica":0,"member":"voter"},..]}  who belongs to it
//                 {"t":"removed"}: this one does not any more
//                 {"t":"drained"}: it ends, and is not missed
//                 {"t":"bring_back","replica":2,"checkpoint":"","forget":false}
//                 {"t":"acceptor_only"}: it has no server until a checkpoint is there
//                 {"t":"refused","why":"..."}: the server cannot be dumped; "": it can
//   run -> node   {"t":"listener","port":80} with the socket  {"t":"listen_failed","port":80,...}
//                 {"t":"not_published","port":80}
//                 {"t":"checkpoint"}: a replica recovers without one
//                 {"t":"stop"}                                {"t":"signal","signo":n}
//
// The members decide which nodes run: who is added to the group gets a node, at a checkpoint if
// there is one; who is removed ends by itself (members.cc).
//
// When crane-run dies, however, its nodes go on.  The next crane-run takes them over: it connects
// to each (take_over.h), and that connection is the channel from then on (group_take_over.cc).
//
// INVARIANT ADOPT-1  A port is opened anew only when every node that was taken over has handed
//                        over the listening sockets that it has; a port that cannot be had ends no
//                        group that has served.
//
// Threads / Processes: one thread. crane-run is the subreaper of all that its nodes leave behind,
// so run() returns only when no process of the group is left.  Nodes that it took over are not its
// children: pidfds tell of their ends.

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/control/outbox.h"
#include "runtime/launcher/agent/agent_socket.h"
#include "runtime/launcher/lasting.h"
#include "runtime/launcher/node_setup.h"
#include "runtime/launcher/options.h"
#include "runtime/launcher/restart_limiter.h"
#include "runtime/launcher/run/analysis_place.h"
#include "runtime/launcher/run/listeners.h"
#include "runtime/launcher/run/server_output.h"
#include "runtime/launcher/run/unsaved.h"
#include "runtime/launcher/take_over.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/profile.h"

namespace crane::launcher {

using setup::GroupDirectories;
using setup::Parts;
using setup::Profile;

// From here on SIGINT, SIGTERM, SIGHUP and SIGCHLD wait for the group's loop: who is told to stop
// while it finds its nodes ends them in order.
void hold_signals();

class Group {
 public:
  Group(const Options& options, const Parts& parts, const Profile& profile,
        const std::string& program, GroupDirectories& directories, const GroupRecord& record,
        const Lasting& lasting);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Starts the nodes and serves until the group ends. Returns crane-run's exit status.
  int run();
  // The same for a group that is there already.  `ends`: only to end it.
  int take_over(bool ends);

 private:
  struct Replica {
    int number = 0;
    pid_t node = -1;
    int pidfd = -1;  // of a node that is no child of ours
    pid_t server = -1;
    int channel = -1;
    control::Outbox outbox;  // to its node, which may be stopped
    std::uint64_t view = 0;
    bool leads = false, ready = false, exited = false;
    bool member = false, votes = false;
    bool removed = false, drained = false;  // said by its node, which ends
    bool acceptor_only = false;             // said by its node: no server ends there
    std::optional<Begin> next;              // then it recovers so
    int exit_status = 0;                    // of its server, when `exited`
    bool by_signal = false;                 // its server's end
    RestartLimiter returns;
    std::string told;         // of its return, last
    bool unheard = false;     // its node lives and has not answered us yet,
    bool introduces = false;  // or has, and not handed all of its listening sockets over
    std::vector<std::string> asks_to_listen;  // which waits for those of others (ADOPT-1)
    std::int64_t heard_of_ms = 0;             // when it was asked last
    pid_t unheard_pid = -1;                   // as the crane-run before knew it
    int node_status = 0;                      // of its node, as wait(2) gives it, once `node` is -1
    Outcome problem = Done{};                 // what its node reported as fatal
    int fatal_code = 0;  // with this status (runtime/setup/exit_status.h); 0: it did not
  };
  enum class Phase { kStarting, kServing, kStopping };

  Outcome start();
  Outcome start_node(Replica& replica, const Begin& begin);
  std::string configuration(int number, const Begin& begin) const;
  // group_take_over.cc
  void know_again();
  void find_nodes();
  bool adopt(Replica& replica);
  void look_for_adoption();
  void look_at_adopted();
  bool somebody_is_unheard() const;
  bool somebody_introduces() const;
  void answer_listens();
  void kill_unheard();
  nlohmann::json answer(const nlohmann::json& request);
  // group_restarts.cc
  bool returns(const Replica& replica) const;
  void plan_return(Replica& replica);
  void stops_returning(Replica& replica);
  bool somebody_returns() const;
  int return_timeout() const;
  void look_after_returns();
  void try_return(Replica& replica);
  void return_from_disk(Replica& replica);
  void ask_for_checkpoint();
  bool has_checkpoint() const;
  std::string why_no_checkpoint(bool there) const;
  bool majority_fails() const;
  void note_hand_over(const Replica& replica);
  void serve();
  void on_signals();
  void open_signals();
  int conclude();
  void finish_output();
  void say_what_stays();
  void hear(Replica& replica);
  void open_channel(Replica& replica, int channel);
  void close_channel(Replica& replica);
  void tell(Replica& replica, const nlohmann::json& message, int passed = -1);
  void flush(Replica& replica);
  void on_fd(Replica& replica, const std::string& json, int fd);
  void on_message(Replica& replica, const std::string& json);
  void on_listen(Replica& replica, const nlohmann::json& asked);
  void keep_inside(Replica& replica, std::uint16_t port);
  void on_role(Replica& replica, const std::string& role, std::uint64_t view);
  void on_exit(Replica& replica, int status, bool by_signal);
  void on_fatal(Replica& replica, int code, const std::string& message);
  // members.cc
  void on_members(const nlohmann::json& members);
  void on_bring_back(const nlohmann::json& message);
  // analysis.cc
  bool analyses(const Replica& replica) const {
    return replica.number == options_.analysis_place();
  }
  bool analysis_differs() const;
  void look_after_analysis();
  void analysis_changed(Replica& replica, bool is_member);
  void start_analysis(Replica& replica, const std::string& how);
  void let_analysis_go(Replica& replica, const std::string& why);
  void on_analysis_end(Replica& replica, int status);
  void bring_back(Replica& replica, const Begin& begin);
  bool is_gone(Replica& replica);
  bool start_again(Replica& replica, const Begin& begin);
  void reap();
  void on_node_end(Replica& replica, int status);
  void judge(Replica& lost);
  void stop(const char* why);
  bool end_server(const char* why);
  void end_with(const Error& problem);
  void kill_nodes();
  void write_state();
  std::string summary() const;  // for the service manager
  int alive() const;
  int voters() const;
  const char* role_of(const Replica& replica) const;
  int running() const;
  int leader() const;
  std::string home_of(const Replica& replica) const;
  std::string log_of(const Replica& replica) const;

  const Options& options_;
  const Parts& parts_;
  const Profile& profile_;
  const std::string program_;
  const GroupRecord& record_;
  GroupDirectories& directories_;
  const Lasting& lasting_;
  Unsaved unsaved_;
  ServerOutput output_;
  AnalysisPlace analysis_;
  Listeners listeners_;
  AgentSocket door_;
  std::vector<Replica> replicas_;
  Phase phase_ = Phase::kStarting;
  int signals_ = -1;  // signalfd
  std::int64_t stop_deadline_ms_ = 0;
  bool ending_ = false;        // the servers were told to end, so that their files are equal
  std::string refused_;        // why the server cannot be dumped; empty: it can, for all we know
  std::int64_t asked_ms_ = 0;  // when a checkpoint was asked for; 0: never
  bool served_ = false;        // there is something to lose
  bool handed_over_ = false;   // to another build of Crane, none of whose servers has listened
  bool took_over_ = false;     // nodes that live: they may have sockets that clients use
  int status_ = 0;
  Outcome problem_ = Done{};
};

}  // namespace crane::launcher
