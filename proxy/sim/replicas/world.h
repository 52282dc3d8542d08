// SPDX-License-Identifier: Apache-2.0
#pragma once
// Worlds of whole replicas, on one host or on a host each.  The decisions of replicas, crane-run
// and the agents of hosts are production code; everything else is a model on simulated time.
// Faults occur at any moment, also between two actions.
//
//   KEPT      the log contains what a client was answered, and every server has run the same inputs
//   HONEST    a checkpoint contains the state that it claims
//   ROOM      the log is kept whole while nothing prevents checkpoints
//   SPARE     no replica that restarts unasked takes the majority away
//   CAUGHT    a replica that reports that it has caught up has run what was committed at its start
//   NEAR      a replica whose server was near the leader's for kNearNs has caught up
//   TRUST     none begins at a checkpoint after which replicas differed while there is another
//   TIER      none reports that CRIU refuses the server after CRIU has dumped it again
//   LOOP      replicas do not restart over and over while there are no faults
//   ENDED     crane-run never ends the group unasked
//   VERSION   every replica has the same version of the server after the same entry
//   EXIT      a server that an input crashes ends its group within kExitNs, with its status
//   STATUS    crane-ctl status does not report `serving` to a client that waits
//   STREAM    a client receives what the server has written to it: each byte once, and no other
//   INPUT     the log contains what a client has sent: each byte once, and each client once
//   FIN       a client receives the end only if the server or the client has ended the connection
//   RESET     a client is reset only by a replica that began too late to continue (hosts: by any)
//   COSTLESS  a loss that status allowed costs clients kLossNs at most
//   STANDS    a leader's server that is stopped or starved costs clients at most kStalledNs
//             while the others' run
//   LAST      no replica is elected whose server is missing or far behind, if a better one could be
//   LEADER    soon after the last fault there is a leader
//   SERVED    .. and a client is answered
//   WHOLE     .. and all replicas have servers that have run what was missed
//   STUCK     .. and every client has reached its end
//
// The last four find stuck states: nothing can be delivered, and a client waits.
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

// The name of a mutant in crane-sim, and the rule that it removes.
const char* name(Mutant mutant);
const char* rule(Mutant mutant);

enum class FaultKind : std::uint8_t {
  kKill,          // a node, and its server with it
  kKillAll,       // all nodes at once
  kStop,          // a node's processes are stopped for a while
  kPackFails,     // the process that packs is killed
  kDamage,        // the newest checkpoint in a directory
  kFullDisk,      // no checkpoint and no store can be written for a while
  kSlow,          // a server has no processor for a while
  kStopServer,    // a server is stopped for a while, but not its node
  kTransfer,      // an operator requests another leader
  kRestart,       // an operator requests a restart of the server on its files
  kUpgrade,       // an operator requests another version; half of them do not listen
  kNoSupervisor,  // crane-run, or a host's agent, is stopped for a while
  kHostLost,      // a host with node, server, agent and directory is lost for a while
  kDiffers,       // a server does something else than the others
  kFlaw,          // the newest checkpoint in a directory silently lacks something
  kRefuses,       // CRIU refuses to dump the server for a while
  kNoRestore      // no server starts at the newest checkpoint in a directory
};
// Those that a world draws; kNoRestore is drawn apart, so that the worlds of old seeds stay.
inline constexpr unsigned kFaultKinds = static_cast<unsigned>(FaultKind::kRefuses) + 1;
const char* name(FaultKind kind);

struct Fault {
  std::uint64_t point = 0;  // the number of actions and moments before it
  FaultKind kind{};
  unsigned replica = 0;
  std::int64_t lasts_ns = 0;
};

struct Settings {
  unsigned replicas = 3;
  std::uint64_t ring_entries = 96;
  bool hosts = false;            // each replica has its own host, with an agent
  bool on_disk = false;          // the log is in stores
  bool limited = false;          // the stall rule limits followers' servers
  bool paced = true;             // clients wait while the leader's server is late (FLOW-1)
  unsigned runs_at_once = 4;     // entries that a server runs per moment
  unsigned compute_each = 0;     // one of this many requests takes longer; 0: none does
  std::int64_t compute_ns = 0;   // how long it takes
  std::uint32_t crashes_by = 0;  // the request that crashes the server
  std::int64_t every_ns = 0;     // checkpoints by the clock; 0: only by the log's length
  unsigned inputs_per_s = 20;    // from clients without compared connections
  unsigned clients = 0;          // clients whose connections and bytes are compared
  std::uint64_t clients_seed = 1;
  std::int64_t busy_ns = 1'500'000'000;  // how long inputs are frequent; later there are few
  Mutant mutant = Mutant::kNone;
  std::FILE* trace = nullptr;
};

struct Result {
  std::string violation;  // empty: every property held
  bool given_up = false;  // what was damaged or not kept was everything there was
  bool ended = false;     // together with its server, which crashed
  std::uint64_t points = 0;
  std::uint64_t answered = 0, restarts = 0, checkpoints = 0, acceptors = 0, views = 0;
  std::uint64_t diverged = 0, fetched = 0;
  // Clients with connections: bytes that they received, how many were taken over, and how many were
  // reset, as is allowed.
  std::uint64_t received = 0, adopted = 0, lost = 0;
  std::int64_t whole_ns = 0;  // from the last fault until all replicas were ready
};

class ReplicaWorld {
 public:
  // `faults` are in ascending order of point.
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
  // The log is on that disk, too.
  bool no_room() const { return settings_.on_disk && disk_full(); }
  bool slow(unsigned id) const { return id == slow_ && now_ns_ < slow_until_ns_; }
  bool server_stopped(unsigned id) const {
    return id == stopped_replica_ && now_ns_ < stopped_until_ns_;
  }
  // The reason; nullptr: CRIU can dump the server.
  const char* refuses_dump() const {
    return now_ns_ < refuses_until_ns_ ? "CRIU refuses it" : nullptr;
  }
  bool refuses_for_good() const { return refuses_for_good_; }
  // The replica is about to carry out one action; false: it dies first.
  bool passes_point(unsigned id);
  void node_ended(unsigned id, node::ExitStatus how);
  void node_restarts();  // by itself
  void server_exited(unsigned id);
  // crane-run ends the group, or a host's agent ends its replica.
  void group_ends(const Outcome& problem, int status);
  void replica_leaves(unsigned id);
  void server_runs(unsigned id);
  void caught_up(unsigned id);
  void refusal_reported(unsigned id, const std::string& why);
  // How a node on its own host begins (choose_starting_point() in proxy/host).
  BeginRules rules_on_host(unsigned id) const;
  // From another host; nullopt: none has any, and those that are present learned that it is
  // missing.
  std::optional<StoredCheckpoint> fetch_for(unsigned id, std::uint64_t behind);
  void fetched(unsigned id, StoredCheckpoint one);
  // Another server begins after that entry.
  void version_begins(unsigned id, std::uint64_t at, std::uint32_t version);
  void begins_at(const StoredCheckpoint& one, bool another);
  // The state of a server that has run everything up to this committed entry.
  std::uint64_t hash_at(std::uint64_t index);
  // The hash after the entry `index`, computed from the hash before it.
  std::uint64_t next_hash(std::uint64_t before, std::uint64_t index) const;
  // `dumped`: by CRIU; otherwise it contains the server's files.
  void published(const StoredCheckpoint& one, std::uint64_t relied, bool dumped);
  void answered(std::uint64_t index);
  void adopted(std::uint64_t clients) { result_.adopted += clients; }
  // Whether a leader may propose what clients have sent.
  bool takes_inputs(unsigned id) const;
  // "": the property holds; otherwise it is violated.
  void complain(const std::string& complaint) {
    if (!complaint.empty()) violate(complaint);
  }
  // The last time when there was no leader.
  std::int64_t unled_ns() const { return unled_ns_; }
  void violate(const std::string& what);
  void trace_line(const char* format, ...) __attribute__((format(printf, 2, 3)));
  // A replica reported that its log is no longer kept whole.
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
  bool all_restored() const;
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
  std::unique_ptr<ModelClients> clients_;  // nullptr: no client has a compared connection
  bool hindered_;  // a checkpoint may fail: by a fault, or because servers are far behind the log
  std::vector<std::unique_ptr<ModelReplica>> replicas_;
  std::vector<std::unique_ptr<ModelSupervisor>> supervisors_;
  std::vector<bool> has_run_;             // per replica: its server has run
  std::vector<std::uint64_t> hashes_{0};  // by index
  // Versions of servers, by the entry after which they began.
  std::map<std::uint64_t, std::uint32_t> versions_;
  std::uint32_t next_version_ = 3;
  struct Proceeds {
    std::int64_t at_ns = 0;
    unsigned id = 0;
  };
  std::vector<Proceeds> proceeds_;
  std::int64_t disk_full_until_ns_ = 0, slow_until_ns_ = 0, stopped_until_ns_ = 0;
  std::int64_t unsupervised_until_ns_ = 0, refuses_until_ns_ = 0;
  unsigned slow_ = kNone, stopped_replica_ = kNone;
  bool refuses_for_good_ = false;
  bool refused_alone_ = false;  // the last fault was a refusal, and all replicas were ready then
  bool log_given_up_ = false;
  bool differed_ = false;  // a server was made to differ
  std::uint32_t next_request_ = 1;
  std::int64_t next_input_ns_ = 0;
  std::int64_t calm_ns_ = 0;      // since when no fault is left; 0: one is
  std::int64_t answered_ns_ = 0;  // the last answer to a client
  std::int64_t honest_ns_ = 0;    // the last time when status was honest to a waiting client
  std::int64_t lost_ns_ = 0;      // when a replica that could be lost was lost; 0: none
  std::int64_t stalled_since_ns_ =
      0;  // since when a leader's server is stopped or starved; 0: none is
  // Per replica: since when its server is near the leader's; 0: it is not.
  std::vector<std::int64_t> near_;
  unsigned calm_restarts_ = 0;  // restarts of replicas since then, unasked
  std::int64_t unled_ns_ = 0;
  std::int64_t led_ns_ = 0;        // the last time with a leader, or without a majority
  std::int64_t dumped_ns_ = 0;     // the last checkpoint by CRIU
  std::int64_t proceeded_ns_ = 0;  // the last time when a stopped node was continued
  std::int64_t exited_ns_ = 0;     // when an input first crashed a server; 0: none did
  std::vector<bool> left_;         // per replica: it left with its server, on its own host
  View elected_{};                 // the last elected leader
  Result result_;
};

// A world whose faults are drawn from the seed.
Result run_replicas(std::uint64_t seed, Settings settings);

}  // namespace crane::replica::sim
