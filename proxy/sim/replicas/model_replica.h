// SPDX-License-Identifier: Apache-2.0
#pragma once
// One replica of a world: the production machines (replica::Recovery, LeadWatch, the rules of
// beginning.h) in a shell that carries out their actions on a model of consensus, server, packer
// and directories.
//
// Threads: one.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/replica/recovery/beginning.h"
#include "proxy/replica/recovery/recovery.h"
#include "proxy/replica/role/lead_watch.h"
#include "proxy/sim/replicas/model_change.h"
#include "proxy/sim/replicas/model_hosts.h"
#include "proxy/sim/replicas/model_log.h"
#include "proxy/sim/replicas/model_proxy.h"
#include "proxy/sim/replicas/model_server.h"
#include "runtime/control/verdict.h"
#include "runtime/setup/exit_status.h"

namespace crane::replica::sim {

class ReplicaWorld;

class ModelReplica {
 public:
  enum class Life : std::uint8_t {
    kDown,
    kFetches,  // on its own host: the process looks for a checkpoint, and begins again
    kStopped,
    kUp
  };

  ModelReplica(ReplicaWorld& world, unsigned id) : world_(world), id_(id), server_(world, id) {}

  // --- actions of crane-run or of its host's agent
  void start(const BeginRules& rules);

  // --- faults
  void kill();
  // The host is lost too, so no agent notices.
  void lose_host();
  // The replica leaves because its server ended unasked.
  void leaves();
  void stop() { set_stopped(true); }
  void proceed() { set_stopped(false); }
  void packing_fails();
  void server_differs() { server_.differ(); }
  // An operator requests another server, or a restart of the same one (version 0).
  void ask_change(std::uint32_t version) {
    if (up() && change_) change_->ask(version);
  }

  // --- effects of its server's change
  change::Tick change_tick() const;
  void end_server();
  void begin_server(std::uint64_t hash);
  void publish_files(std::uint64_t at);

  // Time advances: entries arrive, the server runs, work that was begun ends.
  void step();
  // A comparison with the others found it equal up to `verified`, or different at `at`.
  void compared(std::uint64_t verified) { verified_ = std::max(verified_, verified); }
  void differed(std::uint64_t at);

  // --- its state
  Life life() const { return life_; }
  // How many of its processes have ended.
  unsigned lives() const { return lives_; }
  bool up() const { return life_ == Life::kUp; }
  // Clients are accepted: it leads, and its server has run its START.
  bool serves() const;
  bool has_server() const { return machine_ && !machine_->acceptor_only(); }
  bool server_runs() const { return up() && server_.runs(); }
  // The server has run in this process, even if it is being replaced now.
  bool server_ran() const { return up() && server_ran_; }
  // It has all committed entries, and its server has run them.
  bool whole() const;
  bool changes() const { return change_ && change_->busy(); }
  // The group may lose another replica.
  bool caught_up() const { return has_server() && !machine_->catches_up(); }
  std::uint64_t verified() const { return verified_; }
  std::uint64_t applied() const { return server_.applied(); }
  std::uint64_t ran() const { return server_.ran(); }
  std::uint64_t hash() const { return server_.hash(); }
  std::int64_t behind_ns() const { return server_.behind_ns(); }
  bool waits_at_limit() const { return server_.waits_at_limit(); }
  const std::optional<ServerReport>& report() const { return report_; }
  // Its readiness in its status (StatusReporter::readiness in proxy/host).
  control::Readiness readiness() const;
  // It began too late to continue with that client.
  bool lacks(const proxy::sim::SimSocket& socket, std::uint64_t closed_at) const {
    return proxy_ && proxy_->lacks(socket, closed_at);
  }
  bool log_is_full() const { return machine_ && machine_->log_is_full(); }
  const std::string& refusal() const { return machine_->refusal(); }
  // Its host has files of the group: the replica existed before.
  bool was_here() const { return was_here_; }
  void receive(const Event& event) {
    if (up()) feed(event);
  }
  std::string describe() const;

 private:
  struct Work {  // work outside of the node, and when it ends
    enum class Kind : std::uint8_t { kIdle, kPrepare, kDump, kPack, kPackFiles };
    Kind kind = Kind::kIdle;
    std::int64_t ends_ns = 0;
  };
  struct Fetch {  // a fetch from another host
    std::int64_t ends_ns = 0, again_ns = 0, until_ns = 0;
    std::uint64_t behind = 0;
    std::optional<StoredCheckpoint> what;
  };

  void begin(const BeginRules& rules);
  void begin_again();
  void begin_clients(std::uint64_t behind, const proxy::sim::EchoServer* at);
  void end_clients();
  bool open_log(std::uint64_t behind, const BeginRules& rules);
  void server_failed();
  void forget_life();
  void end(node::ExitStatus how);
  void set_stopped(bool stopped);
  void take_entries();
  void give();
  void run_server();
  void pass();
  void finish_work();
  void note_clients();
  void publish(bool dumped);
  void finish_fetch();
  void begin_fetch(std::uint64_t behind);
  void look_for_checkpoint();
  void rely_on_checkpoints();
  void step_role();
  void step_clients();
  void report_lag();
  void hand_over_if_behind();
  void request_places(std::span<const ReplicaId> voters);
  bool spares() const;
  void look_at_members();
  Facts facts();
  void feed(const Event& event);

  template <typename Other>
  void on(const Other&) {}
  void on(const LogMessage& action);
  void on(const SendNote& action);
  void on(const ProposeCheckpoint& action);
  void on(const Restart& action);
  void on(const FindCheckpoints& action);
  void on(const FetchCheckpoint& action);
  void on(const NoteLogGone&) { gone_ = Index{begins_}; }
  void on(const KeepLog& action);
  void on(const ReportLag& action);
  void on(const ReportCaughtUp&);
  void on(const ReportRefusal& action);
  void on(const Prepare&);
  void on(const Look& action);
  void on(const Slide&);
  void on(const Dump&);
  void on(const ReleaseLog&) { held_ = false; }
  void on(const Pack&);
  void on(const Discard&) { work_ = {}; }

  ReplicaWorld& world_;
  const unsigned id_;
  Life life_ = Life::kDown;
  unsigned lives_ = 0;
  std::optional<Recovery> machine_;
  LeadWatch lead_watch_;
  std::unique_ptr<ModelChange> change_;
  std::unique_ptr<ModelProxy> proxy_;  // nullptr: no server, or the world has no clients
  // Those of processes that ended in the middle of an action.
  std::vector<std::unique_ptr<ModelChange>> past_changes_;
  std::vector<std::unique_ptr<ModelProxy>> past_proxies_;
  ModelServer server_;
  std::deque<Event> events_;
  bool carries_out_ = false;
  std::vector<MemberView> members_;
  std::optional<ServerReport> report_;

  bool was_here_ = false;
  std::uint64_t begins_ = 0;      // the server began after this entry
  bool server_fails_ = false;     // at the checkpoint where it began
  ModelHosts::Began began_;       // the checkpoint at which it began
  std::vector<Index> unusable_;   // checkpoints that could not be unpacked
  std::optional<Index> gone_;     // NoteLogGone of the previous process
  std::uint64_t entries_ = 0;     // entries that arrived
  std::uint64_t for_server_ = 0;  // the last of them that is for a server
  std::uint64_t delivered_ = 0;   // the last of them that the server received
  std::uint64_t limit_ = 0;       // the last entry that a follower's server may run (stall rule)
  std::uint64_t passed_ = 0;      // as the leader: the last entry in a PASSED
  std::int64_t pass_ns_ = 0;      // when it proposes the next PASSED
  bool held_ = false;             // the log is held for a dump
  std::uint64_t committed_at_start_ = 0;  // the last committed entry when it began
  std::uint64_t verified_ = 0;            // up to this entry it was equal to the others
  std::uint64_t relied_ = 0;              // stores may be cut at this checkpoint of its own
  std::vector<std::uint64_t> own_;  // checkpoints at which they may be cut when they are trusted
  std::int64_t began_ns_ = 0;
  std::int64_t full_ns_ = 0;  // since when inputs wait for a checkpoint; 0: they do not
  std::uint64_t start_ = 0;   // START of its reign; 0: not proposed
  View led_{};                // the view in which it leads
  Work work_;
  Fetch fetch_;
  bool server_ran_ = false;
  std::uint64_t packed_at_ = 0, packed_hash_ = 0;
  std::uint32_t packed_version_ = 0;
  std::shared_ptr<const proxy::sim::EchoServer> packed_clients_;
};

}  // namespace crane::replica::sim
