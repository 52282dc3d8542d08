// SPDX-License-Identifier: Apache-2.0
#pragma once
// The server of a replica is ended, and another one takes over its files, by the production's
// ServerChange: a restart, or an upgrade to a version that listens or does not.
//
// Threads: one.

#include <cstdint>
#include <optional>

#include "proxy/replica/recovery/server_change.h"

namespace crane::replica::sim {

class ModelReplica;
class ReplicaWorld;

class ModelChange {
 public:
  // The number of a RESTART entry: its step and its version (0: the same).
  static std::uint32_t number(std::uint32_t step, std::uint32_t version) {
    return step | version << 8;
  }
  // Versions with an odd number do not listen.
  static bool listens(std::uint32_t version) { return version % 2 == 0; }

  ModelChange(ReplicaWorld& world, ModelReplica& replica, unsigned id, std::uint32_t version);

  // An operator's request to the leader; version 0: a restart.
  void ask(std::uint32_t version);
  // Called before the server receives a RESTART entry.
  void committed(std::uint64_t at, std::uint32_t number);
  // The server has admitted the entries after `from` up to `upto`.
  void admitted(std::uint64_t from, std::uint64_t upto);
  void server_started();
  void packed(std::uint64_t at, const char* why_not);
  void tick();

  // The node has ended, perhaps while an action is being carried out.
  void end() { ended_ = true; }
  bool holds_log() const { return machine_.holds_log(); }
  bool under_way() const { return machine_.under_way(); }
  bool busy() const { return machine_.busy(); }
  bool admits_clients() const { return !undecided() && listens(version_); }
  std::uint32_t version() const { return version_; }
  // The state that was noted where the server ended.
  std::uint64_t noted() const { return hash_; }

 private:
  bool undecided() const { return machine_.upgrade().undecided(); }
  void step(const change::Event& event);
  template <typename Other>
  void on(const Other&) {}
  void on(const change::Propose& action);
  void on(const change::LookWhetherOver&);
  void on(const change::NoteServer&);
  void on(const change::BeginServer& action);
  void on(const change::Publish& action);
  void on(const change::Published& action);
  void on(const change::NotPublished& action);
  void on(const change::LogMessage& action);

  ReplicaWorld& world_;
  ModelReplica& replica_;
  const unsigned id_;
  ServerChange machine_;
  std::uint32_t version_ = 0, asked_ = 0;
  std::uint64_t hash_ = 0;
  bool ended_ = false;
  std::int64_t ended_ns_ = 0;  // when the kernel has ended it; 0: it is not ending
};

}  // namespace crane::replica::sim
