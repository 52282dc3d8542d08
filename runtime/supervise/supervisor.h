// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides which replicas have a node, when a lost replica is started again and with which plan, and
// when the group cannot continue.  Pure: one event in, a list of actions out (step.h).
//
// One class for crane-run, which has all replicas of a group, and for a host's agent, which has
// one.  The states of a replica:
//
//   no node --StartNode--> has a node --NodeEnded--> drained    an operator resumes it
//                              ^                     planned    it is started when that is due
//                              |                     removed, released, left: no node
//                              +-- due, resumed, added --+
//
// A lost replica of a group always has a next attempt (RETURN-1).  The supervisor ends the group
// only if another attempt cannot help: a single replica is lost, a node ends before all have run,
// or a majority failed kFailuresMost times in a row.
//
// Threads: one.
// INVARIANT SUP-1  A replica never has two nodes.
// INVARIANT SUP-2  After Stop no node is started.
// INVARIANT SUP-3  A drained replica gets a node only at an operator's request.
// INVARIANT SUP-4  If an operator discards the log's memory, no later node reads it.
// INVARIANT SUP-5  A replica whose server ended returns like a lost one if its node finds that it
//                  differs, or if as many servers go on after kExitTimeoutMs.  If the inputs were
//                  the cause, its server ends there again.  So until it has caught up, the next
//                  server that ends alone ends the group.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "runtime/supervise/analysis_place.h"
#include "runtime/supervise/ends.h"
#include "runtime/supervise/restart_limiter.h"
#include "runtime/supervise/step.h"

namespace crane::supervise {

struct Settings {
  int first = 0;   // number of the first replica
  int places = 1;  // largest number of members
  int members = 1;
  bool host = false;         // an agent's replica, one of a group on several hosts
  bool on_disk = false;      // nodes find their log and checkpoints without help
  bool keeps_files = false;  // servers' files are kept for the next start: they end at one turn
  int stop_signal = 0;       // the signal that ends servers
  std::uint64_t perturb = 0;
  std::int64_t return_unit_ms = 1'000;
  int analysis = -1;      // the place of the analysis replica; -1: none
  std::string tool = {};  // the tool in which it runs the server
  std::string group = {}, dir = {}, shm_dir = {};
};

class Supervisor {
 public:
  struct Replica {
    int number = 0;
    bool runs = false, silent = false;  // has a node; has one that does not answer
    std::uint64_t view = 0;
    bool leads = false, ready = false, exited = false;
    bool member = false, votes = false;
    bool removed = false, drained = false, acceptor_only = false;
    std::string resume_failure;  // why it did not recover after an operator resumed it

    bool has_node() const { return runs || silent; }

   private:
    friend class Supervisor;
    Plan plan;                 // its node's plan
    std::optional<Plan> next;  // an operator's plan for its next node
    std::string announcement;  // message for when its node is started
    bool forgets = false;      // discard its log's memory; until a node has opened that
    bool served = false;
    bool resumes = false;      // an operator resumed it, and it does not serve yet
    bool looks = false;        // it waits for CheckpointLookup
    bool ended_alone = false;  // SUP-5: its server ended, and the next one has not caught up
    int wait = 0;              // result of wait(2) for its last node
    int code = 0;              // exit status that the node reported; 0: none
    Outcome problem = Done{};
    int exit_status = 0;  // its server's, if `exited`
    ExitReason exit_reason = ExitReason::kExited;
    std::string refused;
    RestartLimiter returns;
  };
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  explicit Supervisor(Settings settings);

  std::vector<Action> step(const Event& event, std::int64_t now_ms);
  std::int64_t deadline_ms() const;

  // No node is left, and none will start.
  bool over() const;
  bool stopping() const { return phase_ == Phase::kStopping; }
  bool serving() const { return phase_ == Phase::kServing; }
  bool has_served() const { return served_; }  // the group has state to lose
  // The result with which crane-run ends: a problem, or the server's status.
  const Outcome& problem() const { return problem_; }
  int status() const { return status_; }

  const std::vector<Replica>& replicas() const { return replicas_; }
  int leader() const;  // -1: none
  int running() const;
  const char* role_of(const Replica& replica) const;
  std::string summary() const;

 private:
  enum class Phase : std::uint8_t { kStarting, kServing, kStopping };

  void on(const Start&);
  void on(const Found& e);
  void on(const TakeOver& e);
  void on(const Adopted& e);
  void on(const Started& e);
  void on(const NotStarted& e);
  void on(const Reported& e);
  void on(const Role& e);
  void on(const ServerExit& e);
  void on(const Fatal& e);
  void on(const Members& e);
  void on(const BringBack& e);
  void on(const Refused& e);
  void on(const NodeEnded& e);
  void on(const CheckpointLookup& e);
  void on(const Resume& e);
  void on(const Stop& e);
  void on(const Kill&);
  void on(const Fail& e);
  void on(const Tick&);

  void act(Action action) { actions_.push_back(std::move(action)); }
  void print_message(std::string text, setup::Level level = setup::Level::kInfo);
  Replica& at(int replica) {
    return replicas_[static_cast<std::size_t>(replica - settings_.first)];
  }
  bool analyses(const Replica& r) const { return r.number == settings_.analysis; }

  void start(Replica& r, Plan plan, std::string announcement = "");
  void plan_return(Replica& r);
  void try_return(Replica& r);
  bool returns(const Replica& r, const End& end) const;
  bool ended_on_request(Replica& r);
  void stay_drained(Replica& r, std::string why);
  void bring_back(Replica& r, const Plan& plan);
  void lose(Replica& r);
  void decide_after_loss(Replica& lost);
  bool majority_fails() const;
  void ask_for_checkpoint();
  void release_analysis(Replica& r, const std::string& why);
  void look_after_analysis();
  void decide_after_exits(const Replica& last);
  void take_back_exit(Replica& r);
  bool others_go_on() const;
  void return_exited();
  bool end_servers(const char* why);
  void signal_servers();
  void stop(const char* why, int signal = 0);
  void end_harder();
  void end_with(const Error& problem);
  void leave(const Replica& r);
  void give_up(const Outcome& why);
  void answer(const char* error, std::string text);

  int alive() const;
  int voters() const;
  bool analysis_differs() const;
  std::string home_of(const Replica& r) const;
  std::string log_of(const Replica& r) const { return "its log: " + home_of(r) + "/node.log"; }
  Error why_lost(const Replica& r, const NodeEnded& e) const;

  const Settings settings_;
  std::vector<Replica> replicas_;
  AnalysisPlace place_;
  std::vector<Action> actions_;
  std::int64_t now_ms_ = 0;
  Phase phase_ = Phase::kStarting;
  std::int64_t stop_deadline_ms_ = kNever;
  int signal_ = 0;            // the last signal for ending nodes
  bool ending_ = false;       // servers received the signal to end, so that their files are equal
  bool served_ = false;       // all replicas have run
  bool handed_over_ = false;  // to another build of Crane; none of its servers has listened yet
  bool left_ = false;         // an agent's replica has left
  bool answers_ = false;      // an operator waits until the node is started
  std::optional<std::int64_t> checkpoint_request_ms_;  // of the last request to this leader
  bool wants_checkpoint_ = false;                      // a request that no leader has received
  std::string refused_;                                // why the server cannot be dumped
  int status_ = 0;
  Outcome problem_ = Done{};
};

}  // namespace crane::supervise
