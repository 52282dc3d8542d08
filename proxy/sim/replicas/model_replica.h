// SPDX-License-Identifier: Apache-2.0
#pragma once
// One replica of a world: the production machines (replica::Recovery, LeadWatch, the rules of
// beginning.h) in a shell that carries their actions out on a model of consensus, server, packer
// and directories.
//
// Threads: one.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/replica/recovery/beginning.h"
#include "proxy/replica/recovery/recovery.h"
#include "proxy/replica/role/lead_watch.h"
#include "proxy/sim/replicas/model_log.h"
#include "runtime/control/verdict.h"

namespace crane::replica::sim {

class ReplicaWorld;

// A checkpoint in a directory of the machine: any replica can begin there.
struct StoredCheckpoint {
  std::uint64_t at = 0;
  unsigned by = 0;
  std::uint64_t hash = 0;  // of what a server that begins there has run
  bool damaged = false;    // it cannot be unpacked
};

class ModelReplica {
 public:
  enum class Life : std::uint8_t { kDown, kStopped, kUp };
  // Why a node ended, as crane-run sees it.
  enum class End : std::uint8_t { kKilled, kRestarts, kCannotBegin };

  ModelReplica(ReplicaWorld& world, unsigned id) : world_(world), id_(id) {}

  // --- what crane-run does
  void start(const BeginRules& rules);

  // --- faults
  void kill() { end(End::kKilled); }
  void stop() { set_stopped(true); }
  void proceed() { set_stopped(false); }
  void packing_fails();

  // Time goes on: entries come, the server runs, what was begun ends.
  void step();

  // --- what others see
  Life life() const { return life_; }
  bool up() const { return life_ == Life::kUp; }
  // Clients are taken: it leads, and its server has run its START.
  bool serves() const;
  bool has_server() const { return life_ != Life::kDown && machine_ && !machine_->acceptor_only(); }
  // It has all that was committed, and its server has run it.
  bool whole() const;
  std::uint64_t applied() const { return applied_; }
  std::uint64_t hash() const { return hash_; }
  const std::optional<ServerReport>& report() const { return report_; }
  // What its status says of it (StatusReporter::readiness in proxy/host).
  control::Readiness readiness() const;
  const Recovery* machine() const { return machine_ ? &*machine_ : nullptr; }
  bool log_is_full() const { return machine_ && machine_->log_is_full(); }
  void hear(const Event& event);
  std::string describe() const;

 private:
  enum class Server : std::uint8_t { kGone, kStarts, kRuns };
  struct Work {  // what was begun outside of the node, and when it ends
    enum class Kind : std::uint8_t { kIdle, kPrepare, kDump, kPack };
    Kind kind = Kind::kIdle;
    std::int64_t ends_ns = 0;
  };

  void begin(const BeginRules& rules);
  bool open_log(std::uint64_t behind, bool at_checkpoint, const BeginRules& rules);
  void end(End how);
  void set_stopped(bool stopped);
  void take_entries();
  void run_server();
  void finish_work();
  void step_role();
  void hand_over_if_behind();
  std::int64_t behind_ns() const;
  bool spares() const;
  void look_at_members();
  Facts facts();
  void feed(const Event& event);

  template <typename Other>
  void on(const Other&) {}
  void on(const Tell& action);
  void on(const ProposeCheckpoint& action);
  void on(const Restart& action);
  void on(const FindCheckpoints& action);
  void on(const NoteLogGone&) { gone_ = Index{begins_}; }
  void on(const KeepLog& action);
  void on(const ReportLag& action);
  void on(const ReportCaughtUp&);
  void on(const Prepare&);
  void on(const Look& action);
  void on(const Slide&);
  void on(const Dump&);
  void on(const ReleaseLog&) { held_.reset(); }
  void on(const Pack&);
  void on(const Discard&) { work_ = {}; }

  ReplicaWorld& world_;
  const unsigned id_;
  Life life_ = Life::kDown;
  std::optional<Recovery> machine_;
  LeadWatch lead_watch_;
  std::deque<Event> events_;
  bool carries_out_ = false;
  std::vector<MemberSeen> members_;
  std::optional<ServerReport> report_;

  std::uint64_t begins_ = 0;           // the server began behind this entry
  std::vector<Index> unusable_;        // checkpoints that could not be unpacked
  std::optional<Index> gone_;          // NoteLogGone of the life before
  std::uint64_t taken_ = 0;            // entries that came here,
  std::uint64_t given_ = 0;            // and that the server was given
  std::optional<std::uint64_t> held_;  // the log is, behind this entry
  Server server_ = Server::kGone;
  std::int64_t server_at_ns_ = 0;  // when it runs, or goes on after a computation
  std::uint64_t applied_ = 0, hash_ = 0;
  std::uint64_t missed_ = 0;  // what was committed when it began
  std::int64_t began_ns_ = 0;
  std::int64_t full_ns_ = 0;     // since when inputs wait for a checkpoint; 0: they do not
  std::int64_t applied_ns_ = 0;  // when it last ran all that there was
  std::uint64_t start_ = 0;      // of the own reign; 0: not proposed
  View led_{};                   // in which it leads
  Work work_;
  std::uint64_t packed_at_ = 0, packed_hash_ = 0;
};

}  // namespace crane::replica::sim
