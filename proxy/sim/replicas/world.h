// SPDX-License-Identifier: Apache-2.0
#pragma once
// Worlds of whole replicas, on one host or on a host each: what replicas, crane-run and the agents
// of hosts decide is the production code, all else is a model on simulated time.  Faults come at
// any moment, also between two actions.
//
//   KEPT      what a client was answered is in the log, and every server has run the same inputs
//   HONEST    a checkpoint holds what it says it holds
//   ROOM      the log is kept whole while nothing keeps checkpoints from coming
//   SPARE     no replica that restarts by itself takes the majority away
//   CAUGHT    a replica that says that it has caught up has run what was committed when it began
//   NEAR      one whose server was near the leader's for kNearNs has caught up
//   TRUST     none begins at a checkpoint behind which replicas differed while there is another
//   TIER      none says that CRIU refuses the server after it has dumped it again
//   LOOP      replicas do not restart over and over when no fault comes
//   ENDED     crane-run never ends the group by itself
//   VERSION   every replica has the same version of the server behind the same entry
//   EXIT      a server that crashes by an input ends its group within kExitNs, and with its status
//   STATUS    crane-ctl status does not say `serving` to a client that waits
//   STREAM    a client hears what the server has written to it: no byte lost, none twice, none
//   foreign INPUT     the log has what a client has sent: no byte lost, none twice, each client
//   once FIN       a client hears the end only where the server or the client has ended it RESET a
//   client is reset only by a replica that began too late to go on (on hosts: by any) COSTLESS  a
//   loss that status said the group may have costs its clients kLossNs at most STANDS    a leader's
//   server that stands, or starves, costs its clients kStandsNs at most while
//             the others' run
//   LAST      none is elected whose server is not there, or far behind, while a better one could be
//   LEADER    after the last fault there is soon a leader
//   SERVED    .. and a client is answered
//   WHOLE     .. and all replicas have servers that have run what was missed
//   STUCK     .. and every client has come to its end
//
// The last four find stuck states: nothing is deliverable there, and a client waits.
//
// REPLAY  crane-sim --replicas --seed N --trace
// Threads: one.

#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "consensus/sim/world.h"
#include "proxy/sim/replicas/model_clients.h"
#include "proxy/sim/replicas/model_hosts.h"
#include "proxy/sim/replicas/model_log.h"
#include "proxy/sim/replicas/model_replica.h"
#include "proxy/sim/replicas/model_supervisor.h"

namespace crane::replica::sim {

inline constexpr std::int64_t kMs = 1'000'000;

// Of a mutant: how crane-sim calls it, and the rule that it removes.
const char* name(Mutant mutant);
const char* rule(Mutant mutant);

enum class FaultKind : std::uint8_t {
  kKill,          // of a node, and its server with it
  kKillAll,       // of all nodes at once
  kStop,          // of a node's processes, for a while
  kPackFails,     // the process that packs is killed
  kDamage,        // of the newest checkpoint in a directory
  kFullDisk,      // no checkpoint and no store can be written for a while
  kSlow,          // a server's processor is taken for a while
  kStopServer,    // a server is stopped for a while, and its node is not
  kTransfer,      // an operator wants another leader
  kRestart,       // .. the server to be ended, and another one to begin on its files
  kUpgrade,       // .. one of another version, which half of the time does not listen
  kNoSupervisor,  // crane-run, or a host's agent, is stopped for a while
  kHostLost,      // with node, server, agent and directory, for a while
  kDiffers,       // a server does something else than the others
  kFlaw,          // the newest checkpoint in a directory lacks something, which nothing shows
  kRefuses        // CRIU refuses to dump the server for a while
};
inline constexpr unsigned kFaultKinds = static_cast<unsigned>(FaultKind::kRefuses) + 1;
const char* name(FaultKind kind);

struct Fault {
  std::uint64_t point = 0;  // how many actions and moments have passed
  FaultKind kind{};
  unsigned replica = 0;
  std::int64_t lasts_ns = 0;
};

struct Settings {
  unsigned replicas = 3;
  std::uint64_t ring_entries = 96;
  bool hosts = false;            // each replica has a host of its own, with an agent
  bool on_disk = false;          // the log is in stores
  bool limited = false;          // the stall rule limits followers' servers
  bool paced = true;             // clients wait while the leader's server is late (FLOW-1)
  unsigned runs_at_once = 4;     // entries that a server runs per moment
  unsigned compute_each = 0;     // every so many requests take longer; 0: none does,
  std::int64_t compute_ns = 0;   // so much
  std::uint32_t crashes_by = 0;  // the server crashes by this request
  std::int64_t every_ns = 0;     // checkpoints by the clock; 0: for the log's length alone
  unsigned inputs_per_s = 20;    // of clients whose connections do not matter
  unsigned clients = 0;          // whose do, and their bytes
  std::uint64_t clients_seed = 1;
  std::int64_t busy_ns = 1'500'000'000;  // so long there are inputs; then a few only
  Mutant mutant = Mutant::kNone;
  std::FILE* trace = nullptr;
};

struct Result {
  std::string violation;  // empty: every property held
  bool given_up = false;  // what was damaged, or not kept, was all that there was
  bool ended = false;     // with its server, which crashed
  std::uint64_t points = 0;
  std::uint64_t answered = 0, restarts = 0, checkpoints = 0, acceptors = 0, views = 0;
  std::uint64_t diverged = 0, fetched = 0;
  // Clients with connections: bytes that they heard, how many were taken over, and how many were
  // reset, as they may be.
  std::uint64_t heard = 0, adopted = 0, lost = 0;
  std::int64_t whole_ns = 0;  // from the last fault until all was whole
};

class ReplicaWorld {
 public:
  // `faults` ascend by point.
  ReplicaWorld(const Settings& settings, std::vector<Fault> faults);
  Result run();

  // --- for replicas and crane-run
  std::int64_t now_ns() const { return now_ns_; }
  ModelLog& log() { return log_; }
  const ModelLog& log() const { return log_; }
  ModelClients& clients() { return *clients_; }
  ModelHosts& hosts() { return hosts_; }
  const ModelHosts& hosts() const { return hosts_; }
  const Settings& settings() const { return settings_; }
  ModelReplica& replica(unsigned id) { return *replicas_[id]; }
  const ModelReplica& replica(unsigned id) const { return *replicas_[id]; }
  unsigned replicas() const { return settings_.replicas; }
  bool disk_full() const { return now_ns_ < disk_full_until_ns_; }
  // The log, too, is on that disk.
  bool no_room() const { return settings_.on_disk && disk_full(); }
  bool slow(unsigned id) const { return id == slow_ && now_ns_ < slow_until_ns_; }
  bool server_stopped(unsigned id) const { return id == stood_ && now_ns_ < stood_until_ns_; }
  // Why; nullptr: CRIU dumps the server.
  const char* refuses_dump() const {
    return now_ns_ < refuses_until_ns_ ? "CRIU refuses it" : nullptr;
  }
  bool refuses_for_good() const { return refuses_for_good_; }
  // One action is about to be carried out by that replica; false: it dies first.
  bool passes_point(unsigned id);
  void node_ended(unsigned id, node::ExitStatus how);
  void node_restarts();  // by itself
  void server_exited(unsigned id);
  // crane-run ends the group, or the agent of a host its replica.
  void group_ends(const Outcome& problem, int status);
  void replica_leaves(unsigned id);
  void server_runs(unsigned id);
  void refusal_said(unsigned id, const std::string& why);
  // How a node on a host of its own begins (choose_begin() in proxy/host).
  BeginRules rules_on_host(unsigned id) const;
  // From another host; nullopt: none has any, and those that are there heard that it is lacked.
  std::optional<StoredCheckpoint> fetch_for(unsigned id, std::uint64_t behind);
  void fetched(unsigned id, StoredCheckpoint one);
  // Another server begins behind that entry.
  void version_begins(unsigned id, std::uint64_t at, std::uint32_t version);
  void begins_at(const StoredCheckpoint& one, bool another);
  // What a server that has run all up to this committed entry has seen.
  std::uint64_t hash_at(std::uint64_t index);
  // .. and behind the one with that hash.
  std::uint64_t next_hash(std::uint64_t before, std::uint64_t index) const;
  // `dumped`: by CRIU; else it is the server's files.
  void published(const StoredCheckpoint& one, std::uint64_t relied, bool dumped);
  void answered(std::uint64_t index);
  void adopted(std::uint64_t clients) { result_.adopted += clients; }
  // A leader proposes what clients have sent.
  bool takes_inputs(unsigned id) const;
  // A property does not hold; "": it does.
  void complain(const std::string& complaint) {
    if (!complaint.empty()) violate(complaint);
  }
  // When there was no leader, last.
  std::int64_t unled_ns() const { return unled_ns_; }
  void violate(const std::string& what);
  void tell(const char* format, ...) __attribute__((format(printf, 2, 3)));
  // A replica said that its log is not kept whole any more.
  void log_given_up() {
    log_given_up_ = true;
    if (!hindered_) violate("ROOM: the log is given up though nothing hindered a checkpoint");
  }
  void began_without_server() { ++result_.acceptors; }

 private:
  void step();
  void pass_point();
  void inject(const Fault& fault);
  void note_cost(const Fault& fault);
  void spoil_checkpoint(const Fault& fault);
  void lose_host(unsigned id, std::int64_t until_ns);
  void client_sends();
  bool serving() const;
  ModelSupervisor& supervisor_of(unsigned id) { return *supervisors_[settings_.hosts ? id : 0]; }

  void check();
  void compare();
  void check_leader();
  void check_near();
  bool another_is_near() const;
  void check_calm();
  void check_status();
  void check_waits();
  void check_tier();
  void check_exit();
  bool faulty() const;
  bool all_whole() const;
  bool clients_done() const;
  bool differs(const ModelReplica& r);
  bool beyond_repair() const;
  bool supervised() const;
  control::Verdict status() const;
  std::string describe() const;

  const Settings settings_;
  std::vector<Fault> faults_;
  std::size_t next_fault_ = 0;
  std::uint64_t points_ = 0;
  std::int64_t now_ns_ = 0;
  ModelLog log_;
  ModelHosts hosts_;
  std::unique_ptr<ModelClients> clients_;  // nullptr: none has a connection that matters
  bool hindered_;  // a checkpoint may fail: by a fault, or as servers are far behind the log
  std::vector<std::unique_ptr<ModelReplica>> replicas_;
  std::vector<std::unique_ptr<ModelSupervisor>> supervisors_;
  std::vector<bool> has_run_;                        // a server, of each replica
  std::vector<std::uint64_t> hashes_{0};             // by index
  std::map<std::uint64_t, std::uint32_t> versions_;  // of servers, by where they began
  std::uint32_t next_version_ = 3;
  struct Proceeds {
    std::int64_t at_ns = 0;
    unsigned id = 0;
  };
  std::vector<Proceeds> proceeds_;
  std::int64_t disk_full_until_ns_ = 0, slow_until_ns_ = 0, stood_until_ns_ = 0;
  std::int64_t unsupervised_until_ns_ = 0, refuses_until_ns_ = 0;
  unsigned slow_ = kNone, stood_ = kNone;
  bool refuses_for_good_ = false;
  bool refused_alone_ = false;  // all were whole, and no fault came since
  bool log_given_up_ = false;
  bool differed_ = false;  // a server was made to differ
  std::uint32_t next_request_ = 1;
  std::int64_t next_input_ns_ = 0;
  std::int64_t calm_ns_ = 0;        // since when no fault is left; 0: one is
  std::int64_t answered_ns_ = 0;    // a client, last
  std::int64_t said_ns_ = 0;        // until then status was honest to a client that waits
  std::int64_t lost_ns_ = 0;        // a replica that might be lost was; 0: none
  std::int64_t stands_ns_ = 0;      // a leader's server stands, or starves; 0: none
  std::vector<std::int64_t> near_;  // since when a server is near the leader's; 0: it is not
  unsigned calm_restarts_ = 0;      // of replicas by themselves, since then
  std::int64_t unled_ns_ = 0;
  std::int64_t led_ns_ = 0;        // there was a leader, or no majority, last
  std::int64_t dumped_ns_ = 0;     // a checkpoint by CRIU was published, last
  std::int64_t proceeded_ns_ = 0;  // a node that was stopped, last
  std::int64_t exited_ns_ = 0;     // a server crashed by its input first; 0: none did
  std::vector<bool> left_;         // with its server, on a host of its own
  View elected_{};                 // the last leader that was
  Result result_;
};

// A world whose faults are drawn from the seed.
Result run_replicas(std::uint64_t seed, Settings settings);

}  // namespace crane::replica::sim
